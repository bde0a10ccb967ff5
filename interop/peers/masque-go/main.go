// Client and server of CONNECT-UDP (RFC 9298) made with masque-go.
//
//	peer-masque client ADDR:PORT TOKEN HOST:PORT
//	peer-masque server ADDR:PORT
//	peer-masque echo ADDR:PORT
//	peer-masque ask ADDR:PORT
package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/quic-go/masque-go"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/yosida95/uritemplate/v3"
)

const (
	limit = 20 * time.Second
	again = 500 * time.Millisecond
	// A payload that every path carries as a datagram of QUIC.
	length = 1000
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 4 && args[0] == "client":
		return client(args[1], args[2], args[3])
	case len(args) == 2 && args[0] == "server":
		return server(args[1])
	case len(args) == 2 && args[0] == "echo":
		return echo(args[1])
	case len(args) == 2 && args[0] == "ask":
		conn, err := net.Dial("udp", args[1])
		if err != nil {
			return err
		}
		defer conn.Close()
		return ask(conn.Write, conn.Read, conn.SetReadDeadline)
	default:
		return errors.New("usage: peer-masque client ADDR:PORT TOKEN HOST:PORT | server ADDR:PORT | echo ADDR:PORT | ask ADDR:PORT")
	}
}

func template(host string) *uritemplate.Template {
	return uritemplate.MustNew("https://" + host + "/.well-known/masque/udp/{target_host}/{target_port}/")
}

// client asks target through a proxy.
func client(host, token, target string) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	request, err := masque.NewRequest(ctx, template(host), target)
	if err != nil {
		return err
	}
	request.Header().Set("Authorization", "Bearer "+token)
	transport := masque.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{http3.NextProtoH3}},
		QUICConfig:      &quic.Config{EnableDatagrams: true, InitialPacketSize: 1350},
	}
	conn, _, err := transport.Dial(request)
	if err != nil {
		return err
	}
	defer conn.Close()
	if conn.RemoteAddr().String() != target {
		return fmt.Errorf("the next hop is %v", conn.RemoteAddr())
	}
	write := func(content []byte) (int, error) { return conn.WriteTo(content, nil) }
	read := func(content []byte) (int, error) {
		n, _, err := conn.ReadFrom(content)
		return n, err
	}
	return ask(write, read, conn.SetReadDeadline)
}

// ask sends a datagram until it comes back.
func ask(write, read func([]byte) (int, error), setDeadline func(time.Time) error) error {
	sent, received := bytes.Repeat([]byte{7}, length), make([]byte, 1500)
	end := time.Now().Add(limit)
	for time.Now().Before(end) {
		if _, err := write(sent); err != nil {
			return err
		}
		if err := setDeadline(time.Now().Add(again)); err != nil {
			return err
		}
		n, err := read(received)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			continue
		}
		if err != nil {
			return err
		}
		if !bytes.Equal(sent, received[:n]) {
			return fmt.Errorf("another datagram came back: %x", received[:n])
		}
		fmt.Println("answered")
		return nil
	}
	return errors.New("no answer")
}

// echo sends datagrams back.
func echo(address string) error {
	conn, err := net.ListenPacket("udp", address)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "listening on", address)
	buffer := make([]byte, 1500)
	for {
		n, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return err
		}
		if _, err := conn.WriteTo(buffer[:n], from); err != nil {
			return err
		}
	}
}

// server is a proxy for everybody.
func server(address string) error {
	certificate, err := selfSigned()
	if err != nil {
		return err
	}
	var proxy masque.Proxy
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request, err := masque.ParseProxyRequest(r, template(address))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if err := proxy.Proxy(w, request); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	})
	listener, err := net.ListenPacket("udp", address)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "listening on", address)
	proxies := http3.Server{
		Handler:         handler,
		EnableDatagrams: true,
		TLSConfig:       &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{http3.NextProtoH3}},
		QUICConfig:      &quic.Config{EnableDatagrams: true, InitialPacketSize: 1350},
	}
	return proxies.Serve(listener)
}

func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	names := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		DNSNames:     []string{"localhost"},
	}
	der, err := x509.CreateCertificate(rand.Reader, names, names, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
