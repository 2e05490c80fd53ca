// Package manual has a resolver that is told what to find. The host does not ask it.
package manual

import (
	"google.golang.org/grpc/resolver"
)

// Resolver is also its Builder.
type Resolver struct {
	BuildCallback       func(resolver.Target, resolver.ClientConn, resolver.BuildOptions)
	UpdateStateCallback func(err error)
	ResolveNowCallback  func(resolver.ResolveNowOptions)
	CloseCallback       func()

	scheme string
	state  resolver.State
	cc     resolver.ClientConn
}

// NewBuilderWithScheme makes one.
func NewBuilderWithScheme(scheme string) *Resolver { return &Resolver{scheme: scheme} }

// InitialState is what it finds first.
func (r *Resolver) InitialState(s resolver.State) { r.state = s }

// Build is that of resolver.Builder.
func (r *Resolver) Build(target resolver.Target, cc resolver.ClientConn, opts resolver.BuildOptions) (resolver.Resolver, error) {
	r.cc = cc
	if r.BuildCallback != nil {
		r.BuildCallback(target, cc, opts)
	}
	r.UpdateState(r.state)
	return r, nil
}

// Scheme is that of resolver.Builder.
func (r *Resolver) Scheme() string { return r.scheme }

// ResolveNow is that of resolver.Resolver.
func (r *Resolver) ResolveNow(o resolver.ResolveNowOptions) {
	if r.ResolveNowCallback != nil {
		r.ResolveNowCallback(o)
	}
}

// Close is that of resolver.Resolver.
func (r *Resolver) Close() {
	if r.CloseCallback != nil {
		r.CloseCallback()
	}
}

// UpdateState is what it finds from now on.
func (r *Resolver) UpdateState(s resolver.State) {
	r.state = s
	if r.cc == nil {
		return
	}
	err := r.cc.UpdateState(s)
	if r.UpdateStateCallback != nil {
		r.UpdateStateCallback(err)
	}
}

// CC is told what is found.
func (r *Resolver) CC() resolver.ClientConn { return r.cc }

// ReportError says that nothing is found.
func (r *Resolver) ReportError(err error) {
	if r.cc != nil {
		r.cc.ReportError(err)
	}
}
