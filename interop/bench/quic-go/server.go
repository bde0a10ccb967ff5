package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"github.com/quic-go/quic-go"
)

// Bytes written to a stream per call.
var chunk = make([]byte, 1<<20)

func serve(listen, cert, key string, config *quic.Config) error {
	identity, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return err
	}
	settings := tlsConfig()
	settings.Certificates = []tls.Certificate{identity}
	transport, err := bind(listen)
	if err != nil {
		return err
	}
	listener, err := transport.Listen(settings, config)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "listening on", listener.Addr())
	go accept(listener)
	return control()
}

// control answers each line of standard input with statistics.
func control() error {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		cpu := cpuSeconds()
		debug.FreeOSMemory()
		err := printJSON(map[string]any{"cpu_s": cpu, "resident_bytes": residentBytes()})
		if err != nil {
			return err
		}
	}
	return lines.Err()
}

// residentBytes is the memory of this process that is resident.
func residentBytes() uint64 {
	rollup, err := os.ReadFile("/proc/self/smaps_rollup")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(rollup)) {
		var kib uint64
		if n, _ := fmt.Sscanf(line, "Rss: %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	return 0
}

func accept(listener *quic.Listener) {
	for {
		connection, err := listener.Accept(context.Background())
		if err != nil {
			return
		}
		go func() {
			for {
				stream, err := connection.AcceptStream(context.Background())
				if err != nil {
					return
				}
				go answer(stream)
			}
		}()
	}
}

func answer(stream *quic.Stream) {
	var request [8]byte
	if _, err := io.ReadFull(stream, request[:]); err != nil {
		return
	}
	for left := binary.BigEndian.Uint64(request[:]); left > 0; {
		part := chunk[:min(left, uint64(len(chunk)))]
		if _, err := stream.Write(part); err != nil {
			return
		}
		left -= uint64(len(part))
	}
	stream.Close()
}
