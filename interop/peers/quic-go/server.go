package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// serve serves the files of www until it is stopped.
func serve(test, listen, www, cert, key string) error {
	certificate, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return err
	}
	address, err := net.ResolveUDPAddr("udp", listen)
	if err != nil {
		return err
	}
	socket, err := net.ListenUDP("udp", address)
	if err != nil {
		return err
	}
	transport := &quic.Transport{
		Conn:                socket,
		VerifySourceAddress: func(net.Addr) bool { return test == "retry" },
	}
	config := &quic.Config{
		Allow0RTT: test == "zerortt",
		// Without version 2, which a client of this stack asks for.
		Versions: []quic.Version{quic.Version1},
	}
	tlsConfig := http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{certificate}})
	listener, err := transport.ListenEarly(tlsConfig, config)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "listening on", listener.Addr())
	server := http3.Server{Handler: files(www)}
	return server.ServeListener(listener)
}

// files serves the files of www, index.html too, which http.FileServer redirects away from.
func files(www string) http.Handler {
	root := http.Dir(www)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		file, err := root.Open(r.URL.Path)
		if err != nil {
			http.NotFound(w, r)
			return
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil || info.IsDir() {
			http.NotFound(w, r)
			return
		}
		http.ServeContent(w, r, info.Name(), info.ModTime(), file)
	})
}
