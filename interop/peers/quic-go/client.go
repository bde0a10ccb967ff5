package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

const (
	// inFlight is how many requests are under way at once.
	inFlight = 100
	// ticketWait is how long to wait after the first connection for the server's session ticket.
	ticketWait = 300 * time.Millisecond
)

// client runs the client of one case.
type client struct {
	test, server, name, out string

	keyUpdates keyUpdates
	tickets    tls.ClientSessionCache
}

// link is one connection.
type link struct {
	quic *quic.Conn
	http *http3.ClientConn
}

func allPaths(paths []string, list string) ([]string, error) {
	if list != "" {
		text, err := os.ReadFile(list)
		if err != nil {
			return nil, err
		}
		paths = append(paths, strings.Fields(string(text))...)
	}
	if len(paths) == 0 {
		return nil, errors.New("no paths to download")
	}
	return paths, nil
}

func (c *client) run(ctx context.Context, paths []string) error {
	c.tickets = tls.NewLRUClientSessionCache(1)
	switch c.test {
	case "chacha20":
		return unsupported("crypto/tls of Go offers no choice of TLS 1.3 cipher suites")
	case "versionnegotiation":
		return c.versionNegotiation(ctx)
	case "handshakeloss", "handshakecorruption":
		for _, path := range paths {
			if err := c.download(ctx, []string{path}); err != nil {
				return err
			}
		}
		return nil
	case "resumption", "zerortt":
		return c.reconnect(ctx, paths[:1], paths[1:])
	case "keyupdate":
		// quic-go updates keys by itself after 100 packets.
		if err := c.download(ctx, paths); err != nil {
			return err
		}
		if c.keyUpdates.count() == 0 {
			return errors.New("the keys were not updated")
		}
		return nil
	case "connectionmigration":
		return c.migrate(ctx, paths[:1], paths[1:])
	default:
		return c.download(ctx, paths)
	}
}

func (c *client) download(ctx context.Context, paths []string) error {
	l, err := c.dial(ctx, quic.Version1)
	if err != nil {
		return err
	}
	defer l.close()
	return c.getAll(ctx, l, http.MethodGet, paths)
}

func (c *client) versionNegotiation(ctx context.Context) error {
	l, err := c.dial(ctx, quic.Version2)
	var mismatch *quic.VersionNegotiationError
	switch {
	case err == nil:
		l.close()
		return errors.New("the server accepted QUIC version 2")
	case errors.As(err, &mismatch):
		return nil
	default:
		return err
	}
}

func (c *client) reconnect(ctx context.Context, first, rest []string) error {
	l, err := c.dial(ctx, quic.Version1)
	if err != nil {
		return err
	}
	if err := c.getAll(ctx, l, http.MethodGet, first); err != nil {
		return err
	}
	time.Sleep(ticketWait)
	l.close()

	if l, err = c.dial(ctx, quic.Version1); err != nil {
		return err
	}
	defer l.close()
	method := http.MethodGet
	if c.test == "zerortt" {
		method = http3.MethodGet0RTT
	}
	if err := c.getAll(ctx, l, method, rest); err != nil {
		return err
	}
	<-l.quic.HandshakeComplete()
	state := l.quic.ConnectionState()
	if !state.TLS.DidResume {
		return errors.New("the second connection was not resumed")
	}
	if c.test == "zerortt" && !state.Used0RTT {
		return errors.New("0-RTT was not accepted")
	}
	return nil
}

func (c *client) migrate(ctx context.Context, first, rest []string) error {
	l, err := c.dial(ctx, quic.Version1)
	if err != nil {
		return err
	}
	defer l.close()
	if err := c.getAll(ctx, l, http.MethodGet, first); err != nil {
		return err
	}
	transport, err := newTransport(c.server)
	if err != nil {
		return err
	}
	path, err := l.quic.AddPath(transport)
	if err != nil {
		return err
	}
	probe, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := path.Probe(probe); err != nil {
		return fmt.Errorf("probing the new path: %w", err)
	}
	if err := path.Switch(); err != nil {
		return err
	}
	return c.getAll(ctx, l, http.MethodGet, rest)
}

// dial opens a connection; it may be used before the handshake is done if a ticket allows 0-RTT.
func (c *client) dial(ctx context.Context, version quic.Version) (*link, error) {
	address, err := net.ResolveUDPAddr("udp", c.server)
	if err != nil {
		return nil, err
	}
	transport, err := newTransport(c.server)
	if err != nil {
		return nil, err
	}
	tlsConfig := &tls.Config{
		InsecureSkipVerify: true,
		ServerName:         c.name,
		NextProtos:         []string{http3.NextProtoH3},
		ClientSessionCache: c.tickets,
	}
	config := &quic.Config{Versions: []quic.Version{version}, Tracer: c.keyUpdates.tracer}
	dial := transport.Dial
	if c.test == "zerortt" {
		dial = transport.DialEarly
	}
	conn, err := dial(ctx, address, tlsConfig, config)
	if err != nil {
		return nil, err
	}
	h := &http3.Transport{DisableCompression: true}
	return &link{quic: conn, http: h.NewClientConn(conn)}, nil
}

// newTransport makes a socket of the family of server, on any port of loopback.
func newTransport(server string) (*quic.Transport, error) {
	host := "127.0.0.1:0"
	if strings.HasPrefix(server, "[") {
		host = "[::1]:0"
	}
	address, err := net.ResolveUDPAddr("udp", host)
	if err != nil {
		return nil, err
	}
	socket, err := net.ListenUDP("udp", address)
	if err != nil {
		return nil, err
	}
	return &quic.Transport{Conn: socket}, nil
}

func (l *link) close() {
	// An error here means that the connection is closed already.
	_ = l.http.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "")
}

// getAll downloads files concurrently and returns the first error.
func (c *client) getAll(ctx context.Context, l *link, method string, paths []string) error {
	room := make(chan struct{}, inFlight)
	failed := make(chan error, len(paths))
	var group sync.WaitGroup
	for _, path := range paths {
		room <- struct{}{}
		group.Go(func() {
			defer func() { <-room }()
			if err := c.get(ctx, l, method, path); err != nil {
				failed <- fmt.Errorf("%s: %w", path, err)
			}
		})
	}
	group.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

func (c *client) get(ctx context.Context, l *link, method, path string) error {
	request, err := http.NewRequestWithContext(ctx, method, "https://"+c.name+path, nil)
	if err != nil {
		return err
	}
	response, err := l.http.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	file, err := os.Create(filepath.Join(c.out, filepath.Clean("/"+path)))
	if err != nil {
		return err
	}
	if _, err := io.Copy(file, response.Body); err != nil {
		return errors.Join(err, file.Close())
	}
	return file.Close()
}
