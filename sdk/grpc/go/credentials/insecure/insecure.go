// Package insecure has credentials of a transport that is not protected.
package insecure

import (
	"context"
	"errors"
	"net"

	"google.golang.org/grpc/credentials"
)

// NewCredentials says that the transport need not be protected. Calls inside of an application never leave the process.
func NewCredentials() credentials.TransportCredentials { return plain{} }

type plain struct{}

func (plain) ClientHandshake(_ context.Context, _ string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return conn, info{credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity}}, nil
}

func (plain) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return conn, info{credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity}}, nil
}

func (plain) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "insecure"}
}

func (plain) Clone() credentials.TransportCredentials { return plain{} }

func (plain) OverrideServerName(string) error { return nil }

type info struct{ credentials.CommonAuthInfo }

func (info) AuthType() string { return "insecure" }

// NewBundle has [NewCredentials] and none for calls.
func NewBundle() credentials.Bundle { return bundle{} }

type bundle struct{}

func (bundle) TransportCredentials() credentials.TransportCredentials { return plain{} }

func (bundle) PerRPCCredentials() credentials.PerRPCCredentials { return nil }

func (bundle) NewWithMode(string) (credentials.Bundle, error) {
	return nil, errors.New("insecure: a bundle has no modes")
}
