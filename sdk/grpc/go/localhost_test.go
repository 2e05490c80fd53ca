//go:build !wasip1

package grpc

import (
	"context"
	"net"
	"testing"
)

func TestOnlyLocalhostIsKnown(t *testing.T) {
	resolver := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return &localhost{}, nil }}
	// The machine's own file of hosts is asked before: it may know localhost, but not a name within it.
	addresses, err := resolver.LookupHost(context.Background(), "server.localhost")
	if err != nil || len(addresses) != 1 || addresses[0] != "127.0.0.1" {
		t.Fatal(addresses, err)
	}
	if addresses, err = resolver.LookupHost(context.Background(), "server.example."); err == nil {
		t.Fatal(addresses)
	}
}
