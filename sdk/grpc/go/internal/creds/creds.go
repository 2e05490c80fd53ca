// Package creds has the types of package credentials that others need: these come without TLS, which would be half of a small function.
package creds

import (
	"context"
	"fmt"
	"net"
)

// PerRPCCredentials add metadata to each call.
type PerRPCCredentials interface {
	GetRequestMetadata(ctx context.Context, uri ...string) (map[string]string, error)
	RequireTransportSecurity() bool
}

// SecurityLevel is how well a connection is protected.
type SecurityLevel int

// Levels.
const (
	InvalidSecurityLevel SecurityLevel = iota
	NoSecurity
	IntegrityOnly
	PrivacyAndIntegrity
)

func (s SecurityLevel) String() string {
	switch s {
	case NoSecurity:
		return "NoSecurity"
	case IntegrityOnly:
		return "IntegrityOnly"
	case PrivacyAndIntegrity:
		return "PrivacyAndIntegrity"
	}
	return fmt.Sprintf("invalid SecurityLevel: %d", int(s))
}

// CommonAuthInfo is in most kinds of AuthInfo.
type CommonAuthInfo struct{ SecurityLevel SecurityLevel }

// GetCommonAuthInfo is how [CheckSecurityLevel] knows it.
func (c CommonAuthInfo) GetCommonAuthInfo() CommonAuthInfo { return c }

// ProtocolInfo describes a kind of credentials.
type ProtocolInfo struct {
	ProtocolVersion  string
	SecurityProtocol string
	SecurityVersion  string
	ServerName       string
}

// AuthInfo is what a handshake came to.
type AuthInfo interface{ AuthType() string }

// TransportCredentials protect a connection.
type TransportCredentials interface {
	ClientHandshake(context.Context, string, net.Conn) (net.Conn, AuthInfo, error)
	ServerHandshake(net.Conn) (net.Conn, AuthInfo, error)
	Info() ProtocolInfo
	Clone() TransportCredentials
	OverrideServerName(string) error
}

// Bundle is credentials of both kinds.
type Bundle interface {
	TransportCredentials() TransportCredentials
	PerRPCCredentials() PerRPCCredentials
	NewWithMode(mode string) (Bundle, error)
}

// RequestInfo is what credentials may know of a call.
type RequestInfo struct {
	Method   string
	AuthInfo AuthInfo
}
