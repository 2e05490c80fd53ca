// Package carry has what the packages of this module keep in a context for each other.
package carry

import "context"

type (
	outgoingKey struct{}
	// IncomingKey is where a context has the metadata that came: a map, or [Lazy].
	IncomingKey struct{}
	// PeerKey is where a context has the other side.
	PeerKey struct{}
	// StreamKey is where a context has the call that is answered.
	StreamKey struct{}
	// RequestInfoKey is where a context has what is told to credentials.
	RequestInfoKey struct{}
)

// Lazy is metadata that is read from its rows when the program asks for it.
type Lazy interface{ Metadata() map[string][]string }

// Outgoing is the metadata of calls that are made with a context: a map, and pairs that were added, in lists of name, value, name, value.
type Outgoing struct {
	Map   map[string][]string
	Added [][]string
}

// WithOutgoing replaces it.
func WithOutgoing(ctx context.Context, outgoing *Outgoing) context.Context {
	return context.WithValue(ctx, outgoingKey{}, outgoing)
}

// OutgoingOf is nil when there is none.
func OutgoingOf(ctx context.Context) *Outgoing {
	outgoing, _ := ctx.Value(outgoingKey{}).(*Outgoing)
	return outgoing
}

// IncomingOf is the map that came, which must not be changed.
func IncomingOf(ctx context.Context) (map[string][]string, bool) {
	switch incoming := ctx.Value(IncomingKey{}).(type) {
	case map[string][]string:
		return incoming, true
	case Lazy:
		return incoming.Metadata(), true
	}
	return nil, false
}
