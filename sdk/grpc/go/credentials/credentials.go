// Package credentials has the types of credentials. There is no connection that they could protect: those of the transport are accepted and do
// nothing, those of a call (tokens) go into its metadata.
package credentials

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/internal/carry"
	"google.golang.org/grpc/internal/creds"
	"google.golang.org/protobuf/proto"
)

// The types that need no TLS are in another package.
type (
	// PerRPCCredentials add metadata to each call.
	PerRPCCredentials = creds.PerRPCCredentials
	// SecurityLevel is how well a connection is protected.
	SecurityLevel = creds.SecurityLevel
	// CommonAuthInfo is in most kinds of AuthInfo.
	CommonAuthInfo = creds.CommonAuthInfo
	// ProtocolInfo describes a kind of credentials.
	ProtocolInfo = creds.ProtocolInfo
	// AuthInfo is what a handshake came to.
	AuthInfo = creds.AuthInfo
	// TransportCredentials protect a connection.
	TransportCredentials = creds.TransportCredentials
	// Bundle is credentials of both kinds.
	Bundle = creds.Bundle
	// RequestInfo is what credentials may know of a call.
	RequestInfo = creds.RequestInfo
)

// Levels.
const (
	InvalidSecurityLevel = creds.InvalidSecurityLevel
	NoSecurity           = creds.NoSecurity
	IntegrityOnly        = creds.IntegrityOnly
	PrivacyAndIntegrity  = creds.PrivacyAndIntegrity
)

// AuthorityValidator checks the name that a call is made for.
type AuthorityValidator interface {
	ValidateAuthority(authority string) error
}

// ErrConnDispatched stays for programs that compare with it.
var ErrConnDispatched = errors.New("credentials: the connection was handed over")

// NewContextWithRequestInfo is for tests of credentials.
func NewContextWithRequestInfo(ctx context.Context, ri RequestInfo) context.Context {
	return context.WithValue(ctx, carry.RequestInfoKey{}, ri)
}

// RequestInfoFromContext is for credentials that are asked for metadata.
func RequestInfoFromContext(ctx context.Context) (ri RequestInfo, ok bool) {
	ri, ok = ctx.Value(carry.RequestInfoKey{}).(RequestInfo)
	return ri, ok
}

// ClientHandshakeInfo has what a resolver says of an address.
type ClientHandshakeInfo struct{ Attributes *attributes.Attributes }

// ClientHandshakeInfoFromContext is empty: there is no handshake.
func ClientHandshakeInfoFromContext(ctx context.Context) ClientHandshakeInfo {
	return ClientHandshakeInfo{}
}

// CheckSecurityLevel refuses what is known to be less.
func CheckSecurityLevel(ai AuthInfo, level SecurityLevel) error {
	if ai == nil {
		return errors.New("credentials: no AuthInfo")
	}
	common, ok := ai.(interface{ GetCommonAuthInfo() CommonAuthInfo })
	if !ok {
		return nil
	}
	if has := common.GetCommonAuthInfo().SecurityLevel; has != InvalidSecurityLevel && has < level {
		return fmt.Errorf("credentials: %s is asked for, there is %s", level, has)
	}
	return nil
}

// ChannelzSecurityInfo is an AuthInfo that channelz shows.
type ChannelzSecurityInfo interface {
	GetSecurityValue() ChannelzSecurityValue
}

// ChannelzSecurityValue is what it shows.
type ChannelzSecurityValue interface{ isChannelzSecurityValue() }

// TLSChannelzSecurityValue is that of TLS.
type TLSChannelzSecurityValue struct {
	ChannelzSecurityValue
	StandardName      string
	LocalCertificate  []byte
	RemoteCertificate []byte
}

// OtherChannelzSecurityValue is any other.
type OtherChannelzSecurityValue struct {
	ChannelzSecurityValue
	Name  string
	Value proto.Message
}

// TLSInfo is the AuthInfo of TLS.
type TLSInfo struct {
	State tls.ConnectionState
	CommonAuthInfo
	SPIFFEID *url.URL
}

// AuthType is tls.
func (t TLSInfo) AuthType() string { return "tls" }

// ValidateAuthority asks the certificate.
func (t TLSInfo) ValidateAuthority(authority string) error {
	host, _, err := net.SplitHostPort(authority)
	if err != nil {
		host = authority
	}
	if len(t.State.PeerCertificates) == 0 {
		return errors.New("credentials: the peer has no certificate")
	}
	return t.State.PeerCertificates[0].VerifyHostname(host)
}

// GetSecurityValue has the certificate of the peer.
func (t TLSInfo) GetSecurityValue() ChannelzSecurityValue {
	value := &TLSChannelzSecurityValue{StandardName: tls.CipherSuiteName(t.State.CipherSuite)}
	if len(t.State.PeerCertificates) > 0 {
		value.RemoteCertificate = t.State.PeerCertificates[0].Raw
	}
	return value
}

// transport stands for TLS, of which only the name is left.
type transport struct{ name string }

// NewTLS does nothing: the server ends TLS.
func NewTLS(c *tls.Config) TransportCredentials {
	if c == nil {
		return &transport{}
	}
	return &transport{c.ServerName}
}

// NewClientTLSFromCert does nothing.
func NewClientTLSFromCert(cp *x509.CertPool, serverNameOverride string) TransportCredentials {
	return &transport{serverNameOverride}
}

// NewClientTLSFromFile does nothing. The file need not exist: it is not in the sandbox.
func NewClientTLSFromFile(certFile, serverNameOverride string) (TransportCredentials, error) {
	return &transport{serverNameOverride}, nil
}

// NewServerTLSFromCert does nothing.
func NewServerTLSFromCert(cert *tls.Certificate) TransportCredentials { return &transport{} }

// NewServerTLSFromFile does nothing. The files need not exist: they are not in the sandbox.
func NewServerTLSFromFile(certFile, keyFile string) (TransportCredentials, error) {
	return &transport{}, nil
}

var errNoHandshake = errors.New("credentials: there is no TLS in a function")

func (t *transport) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, AuthInfo, error) {
	return nil, nil, errNoHandshake
}

func (t *transport) ServerHandshake(conn net.Conn) (net.Conn, AuthInfo, error) {
	return nil, nil, errNoHandshake
}

func (t *transport) Info() ProtocolInfo {
	return ProtocolInfo{SecurityProtocol: "tls", SecurityVersion: "1.2", ServerName: t.name}
}

func (t *transport) Clone() TransportCredentials { return &transport{t.name} }

func (t *transport) OverrideServerName(name string) error {
	t.name = name
	return nil
}
