// Client and server of CONNECT-IP (RFC 9484) made with connect-ip-go. Each carries echo requests of ICMP.
//
//	peer-connect-ip client ADDR:PORT TOKEN TARGET
//	peer-connect-ip server ADDR:PORT
//	peer-connect-ip ping TARGET
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"time"

	connectip "github.com/quic-go/connect-ip-go"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/yosida95/uritemplate/v3"
)

const (
	limit        = 20 * time.Second
	ipHeader     = 20
	icmp         = 1
	echoReply    = 0
	echoRequest  = 8
	clientPrefix = "10.88.0.2/32"
	firstRoute   = "10.88.0.0"
	lastRoute    = "10.88.0.255"
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
	case len(args) == 2 && args[0] == "ping":
		return ping(args[1])
	default:
		return errors.New("usage: peer-connect-ip client ADDR:PORT TOKEN TARGET | server ADDR:PORT | ping TARGET")
	}
}

// template has no variables: connect-ip-go does not expand them.
func template(host string) *uritemplate.Template {
	return uritemplate.MustNew("https://" + host + "/.well-known/masque/ip/*/*/")
}

// client opens a tunnel, and sends an echo request to target through it.
func client(host, token, target string) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	request, err := connectip.NewRequest(ctx, template(host))
	if err != nil {
		return err
	}
	request.Header().Set("Authorization", "Bearer "+token)
	transport := connectip.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{http3.NextProtoH3}},
	}
	conn, _, err := transport.Dial(request)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ReceiveAddressAssignment(ctx); err != nil {
		return err
	}
	// Requests are answered with what is assigned.
	ids, err := conn.RequestAddresses([]netip.Prefix{netip.MustParsePrefix("0.0.0.0/32")})
	if err != nil {
		return err
	}
	assigned, err := conn.ReceiveAddressAssignment(ctx)
	if err != nil {
		return err
	}
	var own netip.Addr
	for _, address := range assigned {
		if address.RequestID == ids[0] && !address.Rejected() {
			own = address.IPPrefix.Addr()
		}
	}
	if !own.Is4() {
		return fmt.Errorf("no address of IPv4 among %v", assigned)
	}
	if routes, err := conn.Routes(ctx); err != nil || len(routes) == 0 {
		return fmt.Errorf("routes %v: %w", routes, err)
	}
	if _, err := conn.WritePacket(packet(own, netip.MustParseAddr(target))); err != nil {
		return err
	}
	buffer := make([]byte, 1500)
	n, err := conn.ReadPacket(buffer)
	if err != nil {
		return err
	}
	if n <= ipHeader || buffer[9] != icmp || buffer[ipHeader] != echoReply {
		return fmt.Errorf("not an echo reply: %x", buffer[:n])
	}
	fmt.Println("answered")
	return nil
}

// server assigns one address, and answers echo requests to all of its routes itself.
func server(address string) error {
	certificate, err := selfSigned()
	if err != nil {
		return err
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request, err := connectip.ParseProxyRequest(r, template(address))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if err := serve(w, request); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	})
	listener, err := net.ListenPacket("udp", address)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "listening on", address)
	tunnels := http3.Server{
		Handler:         handler,
		EnableDatagrams: true,
		TLSConfig:       &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{http3.NextProtoH3}},
		QUICConfig:      &quic.Config{EnableDatagrams: true, InitialPacketSize: 1350},
	}
	return tunnels.Serve(listener)
}

func serve(w http.ResponseWriter, request *connectip.ProxyRequest) error {
	conn, err := (&connectip.Proxy{}).Proxy(w, request)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.AssignAddresses([]netip.Prefix{netip.MustParsePrefix(clientPrefix)}); err != nil {
		return err
	}
	route := connectip.IPRoute{StartIP: netip.MustParseAddr(firstRoute), EndIP: netip.MustParseAddr(lastRoute)}
	if err := conn.AdvertiseRoute([]connectip.IPRoute{route}); err != nil {
		return err
	}
	buffer := make([]byte, 1500)
	for {
		n, err := conn.ReadPacket(buffer)
		if err != nil {
			return err
		}
		if answer := answered(buffer[:n]); answer != nil {
			if _, err := conn.WritePacket(answer); err != nil {
				return err
			}
		}
	}
}

// ping sends an echo request as a program of this host does.
func ping(target string) error {
	conn, err := net.Dial("ip4:icmp", target)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	if _, err := conn.Write(echo()); err != nil {
		return err
	}
	buffer := make([]byte, 1500)
	if _, err := conn.Read(buffer); err != nil {
		return err
	}
	fmt.Println("answered")
	return nil
}

func echo() []byte {
	message := []byte{echoRequest, 0, 0, 0, 0, 1, 0, 1, 'e', 'c', 'h', 'o'}
	binary.BigEndian.PutUint16(message[2:], checksum(message))
	return message
}

func packet(source, destination netip.Addr) []byte {
	message := echo()
	header := make([]byte, ipHeader)
	header[0] = 0x45
	binary.BigEndian.PutUint16(header[2:], uint16(ipHeader+len(message)))
	header[8], header[9] = 64, icmp
	copy(header[12:], source.AsSlice())
	copy(header[16:], destination.AsSlice())
	binary.BigEndian.PutUint16(header[10:], checksum(header))
	return append(header, message...)
}

// answered returns the reply to a packet, if it is an echo request.
func answered(request []byte) []byte {
	if len(request) < ipHeader+8 || request[0] != 0x45 || request[9] != icmp || request[ipHeader] != echoRequest {
		return nil
	}
	reply := append([]byte{}, request...)
	copy(reply[12:16], request[16:20])
	copy(reply[16:20], request[12:16])
	reply[ipHeader] = echoReply
	binary.BigEndian.PutUint16(reply[ipHeader+2:], 0)
	binary.BigEndian.PutUint16(reply[ipHeader+2:], checksum(reply[ipHeader:]))
	return reply
}

func checksum(bytes []byte) uint16 {
	var sum uint32
	for i, b := range bytes {
		sum += uint32(b) << (8 * (1 - i%2))
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
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
