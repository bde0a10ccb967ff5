package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
)

// A client's task.
type task struct {
	server      string
	name        string
	bytes       uint64
	concurrency int
	seconds     float64
	connections int
	count       uint64
	defaults    bool

	remote    *net.UDPAddr
	transport *quic.Transport
}

func (t *task) run(ctx context.Context) error {
	var err error
	if t.remote, err = net.ResolveUDPAddr("udp", t.server); err != nil {
		return err
	}
	if t.name == "fetch" {
		return t.fetch(ctx)
	}
	if err := t.bind(); err != nil {
		return err
	}
	switch t.name {
	case "bulk":
		return t.bulk(ctx)
	case "requests":
		return t.requests(ctx)
	case "handshakes":
		return t.handshakes(ctx)
	case "idle":
		return t.idle(ctx)
	default:
		return fmt.Errorf("no task: %s", t.name)
	}
}

// bind makes a client: on the loopback interface if the server is there.
func (t *task) bind() (err error) {
	local := "0.0.0.0:0"
	if t.remote.IP.IsLoopback() {
		local = "127.0.0.1:0"
	}
	t.transport, err = bind(local)
	return err
}

// A measurement in progress.
type meter struct {
	start time.Time
	cpu   float64
}

func startMeter() meter {
	cpu := cpuSeconds()
	return meter{time.Now(), cpu}
}

func (m meter) seconds() float64 {
	return time.Since(m.start).Seconds()
}

func (m meter) report(count, bytes uint64) error {
	seconds := m.seconds()
	return printJSON(map[string]any{
		"bytes": bytes, "count": count, "seconds": seconds, "cpu_s": cpuSeconds() - m.cpu,
	})
}

// connect opens a connection and waits for the end of its handshake.
func (t *task) connect(ctx context.Context) (*quic.Conn, error) {
	settings := tlsConfig()
	settings.ServerName = "localhost"
	return t.transport.Dial(ctx, t.remote, settings, config(t.defaults))
}

// download requests bytes on a new stream and reads to the end.
func download(ctx context.Context, connection *quic.Conn, bytes uint64, buffer []byte) error {
	stream, err := connection.OpenStreamSync(ctx)
	if err != nil {
		return err
	}
	if _, err := stream.Write(binary.BigEndian.AppendUint64(nil, bytes)); err != nil {
		return err
	}
	stream.Close()
	var received uint64
	for {
		n, err := stream.Read(buffer)
		received += uint64(n)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	if received != bytes {
		return fmt.Errorf("%d bytes instead of %d", received, bytes)
	}
	return nil
}

func (t *task) bulk(ctx context.Context) error {
	connection, err := t.connect(ctx)
	if err != nil {
		return err
	}
	meter := startMeter()
	if err := download(ctx, connection, t.bytes, make([]byte, 1<<16)); err != nil {
		return err
	}
	return meter.report(1, t.bytes)
}

// Time between downloads of the task fetch, in which the end of a connection is sent.
const pause = 50 * time.Millisecond

// fetch downloads with a new client each time, and counts the handshakes.
func (t *task) fetch(ctx context.Context) error {
	start, cpu := time.Now(), cpuSeconds()
	buffer := make([]byte, 1<<16)
	var each []float64
	for range t.count {
		if err := t.bind(); err != nil {
			return err
		}
		from := time.Now()
		connection, err := t.connect(ctx)
		if err != nil {
			return err
		}
		if err := download(ctx, connection, t.bytes, buffer); err != nil {
			return err
		}
		each = append(each, time.Since(from).Seconds())
		if err := connection.CloseWithError(0, ""); err != nil {
			return err
		}
		time.Sleep(pause)
		t.transport.Close()
		t.transport.Conn.Close()
	}
	return printJSON(map[string]any{
		"bytes": t.count * t.bytes, "count": t.count, "seconds": time.Since(start).Seconds(),
		"cpu_s": cpuSeconds() - cpu, "each": each,
	})
}

func (t *task) requests(ctx context.Context) error {
	connection, err := t.connect(ctx)
	if err != nil {
		return err
	}
	meter := startMeter()
	var count atomic.Uint64
	ended := make(chan error, t.concurrency)
	for range t.concurrency {
		go func() {
			buffer := make([]byte, 1<<12)
			for meter.seconds() < t.seconds {
				if err := download(ctx, connection, t.bytes, buffer); err != nil {
					ended <- err
					return
				}
				count.Add(1)
			}
			ended <- nil
		}()
	}
	for range t.concurrency {
		if err := <-ended; err != nil {
			return err
		}
	}
	return meter.report(count.Load(), count.Load()*t.bytes)
}

func (t *task) handshakes(ctx context.Context) error {
	meter := startMeter()
	var count uint64
	for meter.seconds() < t.seconds {
		connection, err := t.connect(ctx)
		if err != nil {
			return err
		}
		if err := connection.CloseWithError(0, ""); err != nil {
			return err
		}
		count++
	}
	return meter.report(count, 0)
}

func (t *task) idle(ctx context.Context) error {
	meter := startMeter()
	held := make([]*quic.Conn, 0, t.connections)
	for range t.connections {
		connection, err := t.connect(ctx)
		if err != nil {
			return err
		}
		held = append(held, connection)
	}
	if err := meter.report(uint64(len(held)), 0); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}
