// Package insecure has credentials of a transport that is not protected.
package insecure

import (
	"context"
	"errors"
	"net"

	"google.golang.org/grpc/internal/creds"
)

// NewCredentials says that the transport need not be protected. Calls inside of an application never leave the process.
func NewCredentials() creds.TransportCredentials { return plain{} }

type plain struct{}

func (plain) ClientHandshake(_ context.Context, _ string, conn net.Conn) (net.Conn, creds.AuthInfo, error) {
	return conn, info{creds.CommonAuthInfo{SecurityLevel: creds.NoSecurity}}, nil
}

func (plain) ServerHandshake(conn net.Conn) (net.Conn, creds.AuthInfo, error) {
	return conn, info{creds.CommonAuthInfo{SecurityLevel: creds.NoSecurity}}, nil
}

func (plain) Info() creds.ProtocolInfo {
	return creds.ProtocolInfo{SecurityProtocol: "insecure"}
}

func (plain) Clone() creds.TransportCredentials { return plain{} }

func (plain) OverrideServerName(string) error { return nil }

type info struct{ creds.CommonAuthInfo }

func (info) AuthType() string { return "insecure" }

// NewBundle has [NewCredentials] and none for calls.
func NewBundle() creds.Bundle { return bundle{} }

type bundle struct{}

func (bundle) TransportCredentials() creds.TransportCredentials { return plain{} }

func (bundle) PerRPCCredentials() creds.PerRPCCredentials { return nil }

func (bundle) NewWithMode(string) (creds.Bundle, error) {
	return nil, errors.New("insecure: a bundle has no modes")
}
