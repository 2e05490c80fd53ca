// Package peer tells which program is on the other side of a call.
package peer

import (
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc/internal/carry"
	"google.golang.org/grpc/internal/creds"
)

// Peer is the other side.
type Peer struct {
	Addr      net.Addr
	LocalAddr net.Addr
	AuthInfo  creds.AuthInfo
}

func (p *Peer) String() string {
	if p == nil {
		return "Peer<nil>"
	}
	auth := "<nil>"
	if p.AuthInfo != nil {
		auth = p.AuthInfo.AuthType()
	}
	return fmt.Sprintf("Peer{Addr: %v, LocalAddr: %v, AuthInfo: %s}", p.Addr, p.LocalAddr, auth)
}

// NewContext has p.
func NewContext(ctx context.Context, p *Peer) context.Context {
	return context.WithValue(ctx, carry.PeerKey{}, p)
}

// FromContext finds it.
func FromContext(ctx context.Context) (p *Peer, ok bool) {
	p, ok = ctx.Value(carry.PeerKey{}).(*Peer)
	return p, ok
}
