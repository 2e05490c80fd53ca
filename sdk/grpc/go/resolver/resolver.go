// Package resolver has the types of what finds addresses. Nothing is dialled, so resolvers are not asked: they can be registered.
package resolver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/internal/creds"
	"google.golang.org/grpc/serviceconfig"
)

var (
	builders = map[string]Builder{}
	scheme   = "passthrough"
)

// Register is for init functions.
func Register(b Builder) { builders[b.Scheme()] = b }

// Get is nil when there is none of that scheme.
func Get(scheme string) Builder { return builders[strings.ToLower(scheme)] }

// SetDefaultScheme is for init functions.
func SetDefaultScheme(s string) { scheme = s }

// GetDefaultScheme is what was set.
func GetDefaultScheme() string { return scheme }

// Address is where a server is.
type Address struct {
	Addr               string
	ServerName         string
	Attributes         *attributes.Attributes
	BalancerAttributes *attributes.Attributes
	Metadata           any
}

// Equal compares all.
func (a Address) Equal(o Address) bool {
	return a.Addr == o.Addr && a.ServerName == o.ServerName && a.Attributes.Equal(o.Attributes) &&
		a.BalancerAttributes.Equal(o.BalancerAttributes) && a.Metadata == o.Metadata
}

func (a Address) String() string {
	return fmt.Sprintf("{Addr: %q, ServerName: %q, Attributes: %v, BalancerAttributes: %v}", a.Addr, a.ServerName, a.Attributes, a.BalancerAttributes)
}

// BuildOptions are for builders.
type BuildOptions struct {
	DisableServiceConfig bool
	DialCreds            creds.TransportCredentials
	CredsBundle          creds.Bundle
	Dialer               func(context.Context, string) (net.Conn, error)
	Authority            string
}

// Endpoint is a server with all of its addresses.
type Endpoint struct {
	Addresses  []Address
	Attributes *attributes.Attributes
}

// State is what a resolver found.
type State struct {
	Addresses     []Address
	Endpoints     []Endpoint
	ServiceConfig *serviceconfig.ParseResult
	Attributes    *attributes.Attributes
}

// ClientConn is told by resolvers.
type ClientConn interface {
	UpdateState(State) error
	ReportError(error)
	NewAddress(addresses []Address)
	ParseServiceConfig(serviceConfigJSON string) *serviceconfig.ParseResult
}

// Target is what is to be resolved.
type Target struct{ URL url.URL }

// Endpoint is the target without scheme and authority.
func (t Target) Endpoint() string {
	endpoint := t.URL.Path
	if endpoint == "" {
		endpoint = t.URL.Opaque
	}
	return strings.TrimPrefix(endpoint, "/")
}

func (t Target) String() string { return t.URL.Scheme + "://" + t.URL.Host + "/" + t.Endpoint() }

// Builder makes resolvers.
type Builder interface {
	Build(target Target, cc ClientConn, opts BuildOptions) (Resolver, error)
	Scheme() string
}

// ResolveNowOptions has nothing.
type ResolveNowOptions struct{}

// Resolver finds addresses.
type Resolver interface {
	ResolveNow(ResolveNowOptions)
	Close()
}

// AuthorityOverrider is a Builder that says what a target is called.
type AuthorityOverrider interface{ OverrideAuthority(Target) string }

// ValidateEndpoints refuses what has no address.
func ValidateEndpoints(endpoints []Endpoint) error {
	for _, endpoint := range endpoints {
		if len(endpoint.Addresses) > 0 {
			return nil
		}
	}
	return errors.New("resolver: no endpoint has an address")
}
