// Package bufconn has listeners and connections in memory. Here they are only passed on: calls do not go through connections.
package bufconn

import (
	"context"
	"errors"
	"net"
	"sync"
)

// Listener accepts what is dialled at it.
type Listener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

type address struct{}

func (address) Network() string { return "bufconn" }
func (address) String() string  { return "bufconn" }

var errClosed = errors.New("bufconn: closed")

// Listen makes one. The size does nothing.
func Listen(sz int) *Listener {
	return &Listener{conns: make(chan net.Conn), done: make(chan struct{})}
}

// Accept waits for the next.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.done:
		return nil, errClosed
	}
}

// Close ends it.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// Addr is a name.
func (l *Listener) Addr() net.Addr { return address{} }

// Dial waits until it is accepted.
func (l *Listener) Dial() (net.Conn, error) { return l.DialContext(context.Background()) }

// DialContext waits until it is accepted, or the context ends.
func (l *Listener) DialContext(ctx context.Context) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case l.conns <- there:
		return here, nil
	case <-l.done:
		return nil, errClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
