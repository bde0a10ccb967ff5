// Command quic-go is the interop peer of quic-go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
)

// statusUnsupported is the exit status for cases that are not supported in this role.
const statusUnsupported = 127

// unsupported is the error for cases that quic-go does not support, with the reason.
type unsupported string

func (reason unsupported) Error() string { return string(reason) }

func main() {
	err := run(os.Args[1:])
	var reason unsupported
	switch {
	case err == nil:
	case errors.As(err, &reason):
		fmt.Fprintln(os.Stderr, "unsupported:", reason)
		os.Exit(statusUnsupported)
	default:
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) == 0 {
		return errors.New("expected server or client")
	}
	flags := flag.NewFlagSet(arguments[0], flag.ExitOnError)
	name := flags.String("case", "", "name of the case")
	switch arguments[0] {
	case "server":
		listen := flags.String("listen", "", "ADDR:PORT")
		www := flags.String("www", "", "directory to serve")
		cert := flags.String("cert", "", "certificate chain, PEM")
		key := flags.String("key", "", "private key, PEM")
		if err := flags.Parse(arguments[1:]); err != nil {
			return err
		}
		return serve(*name, *listen, *www, *cert, *key)
	case "client":
		var c client
		flags.StringVar(&c.server, "server", "", "ADDR:PORT")
		flags.StringVar(&c.name, "name", "", "the server's name")
		flags.StringVar(&c.out, "out", "", "directory for the files")
		list := flags.String("paths-from", "", "file that lists paths")
		if err := flags.Parse(arguments[1:]); err != nil {
			return err
		}
		c.test = *name
		paths, err := allPaths(flags.Args(), *list)
		if err != nil {
			return err
		}
		return c.run(context.Background(), paths)
	default:
		return fmt.Errorf("expected server or client, not %s", arguments[0])
	}
}
