// Package local has credentials of connections inside of a machine.
package local

import (
	"context"
	"net"

	"google.golang.org/grpc/credentials"
)

// NewCredentials does nothing.
func NewCredentials() credentials.TransportCredentials { return local{} }

type local struct{}

type info struct{ credentials.CommonAuthInfo }

func (info) AuthType() string { return "local" }

func (local) ClientHandshake(_ context.Context, _ string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return conn, info{credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}}, nil
}

func (local) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return conn, info{credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}}, nil
}

func (local) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "local"}
}

func (local) Clone() credentials.TransportCredentials { return local{} }

func (local) OverrideServerName(string) error { return nil }
