// Program bench-quic-go is the benchmark program of quic-go.
package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/quic-go/quic-go"
)

const (
	alpn = "bench"
	// Flow-control window of a connection and of a stream, bytes.
	window = 16 << 20
	// Bidirectional streams a client may have open.
	streams = 256
	// Longer than any task.
	idle = 5 * time.Minute
	// Wished size of the socket's buffers, bytes.
	buffer = 4 << 20
)

func main() {
	if len(os.Args) < 2 {
		fail(fmt.Errorf("usage: bench-quic-go server|client ..."))
	}
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	switch os.Args[1] {
	case "server":
		listen := flags.String("listen", "", "address and port to listen on")
		cert := flags.String("cert", "", "certificate, PEM")
		key := flags.String("key", "", "private key, PEM")
		defaults := flags.Bool("defaults", false, "keep the stack's own windows and limits")
		_ = flags.Parse(os.Args[2:])
		fail(serve(*listen, *cert, *key, config(*defaults)))
	case "client":
		var t task
		flags.StringVar(&t.server, "server", "", "the server's address and port")
		flags.StringVar(&t.name, "task", "", "bulk, requests, handshakes, idle or fetch")
		flags.Uint64Var(&t.bytes, "bytes", 1<<30, "bytes to ask for")
		flags.IntVar(&t.concurrency, "concurrency", 1, "requests under way at once")
		flags.Float64Var(&t.seconds, "seconds", 1, "how long to make requests or handshakes")
		flags.IntVar(&t.connections, "connections", 2000, "connections to hold idle")
		flags.Uint64Var(&t.count, "count", 1, "downloads of the task fetch")
		flags.BoolVar(&t.defaults, "defaults", false, "keep the stack's own windows and limits")
		_ = flags.Parse(os.Args[2:])
		fail(t.run(context.Background()))
	default:
		fail(fmt.Errorf("neither server nor client: %s", os.Args[1]))
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func config(defaults bool) *quic.Config {
	if defaults {
		return &quic.Config{}
	}
	return &quic.Config{
		InitialStreamReceiveWindow:     window,
		MaxStreamReceiveWindow:         window,
		InitialConnectionReceiveWindow: window,
		MaxConnectionReceiveWindow:     window,
		MaxIncomingStreams:             streams,
		MaxIdleTimeout:                 idle,
	}
}

func tlsConfig() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		CurvePreferences:   []tls.CurveID{tls.X25519},
		NextProtos:         []string{alpn},
		InsecureSkipVerify: true,
	}
}

// bind opens a socket at address.
func bind(address string) (*quic.Transport, error) {
	local, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return nil, err
	}
	socket, err := net.ListenUDP("udp", local)
	if err != nil {
		return nil, err
	}
	// The system may grant less.
	_ = socket.SetReadBuffer(buffer)
	_ = socket.SetWriteBuffer(buffer)
	return &quic.Transport{Conn: socket}, nil
}

// cpuSeconds is the CPU time this process has used, user and system.
func cpuSeconds() float64 {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

// printJSON prints value as one line.
func printJSON(value any) error {
	return json.NewEncoder(os.Stdout).Encode(value)
}
