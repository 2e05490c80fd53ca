package grpc

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/internal/creds"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

var (
	// ErrClientConnClosing is what calls of a closed ClientConn fail with.
	//
	// Deprecated: look for codes.Canceled.
	ErrClientConnClosing = status.Error(codes.Canceled, "grpc: the ClientConn is closed")
	// ErrClientConnTimeout stays for programs that compare with it.
	ErrClientConnTimeout = errors.New("grpc: dialling took too long")

	errNoCredentials = errors.New("grpc: no transport credentials: use WithTransportCredentials(insecure.NewCredentials()) or others")
)

// PickFirstBalancerName is the name of a balancer.
const PickFirstBalancerName = "pick_first"

// EnableTracing does nothing.
var EnableTracing bool

// here is the other side of all calls: this process.
var here = &peer.Peer{
	Addr:      &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)},
	LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)},
	AuthInfo:  processAuth{creds.CommonAuthInfo{SecurityLevel: creds.NoSecurity}},
}

type processAuth struct{ creds.CommonAuthInfo }

func (processAuth) AuthType() string { return "insecure" }

// ClientConnInterface is what generated code calls.
type ClientConnInterface interface {
	Invoke(ctx context.Context, method string, args any, reply any, opts ...CallOption) error
	NewStream(ctx context.Context, desc *StreamDesc, method string, opts ...CallOption) (ClientStream, error)
}

var _ ClientConnInterface = (*ClientConn)(nil)

// ClientConn makes calls. The application's configuration says, by service, which function or server gets them. The target is only a name.
type ClientConn struct {
	target  string
	options dialOptions
	unary   UnaryClientInterceptor
	stream  StreamClientInterceptor

	state   atomic.Int32 // a connectivity.State; changes under the mutex
	mutex   sync.Mutex
	changed chan struct{} // closed at the next change
}

// NewClient makes one.
func NewClient(target string, opts ...DialOption) (conn *ClientConn, err error) {
	cc := &ClientConn{target: target, changed: make(chan struct{})}
	for _, option := range opts {
		option.apply(&cc.options)
	}
	o := &cc.options
	switch {
	case o.configError != nil:
		return nil, o.configError
	case o.transport == nil && o.bundle == nil:
		return nil, errNoCredentials
	case o.transport != nil && o.bundle != nil:
		return nil, errors.New("grpc: both transport credentials and a bundle")
	}
	if o.bundle != nil {
		o.transport = o.bundle.TransportCredentials()
		if perCall := o.bundle.PerRPCCredentials(); perCall != nil {
			o.perCall = append(o.perCall, perCall)
		}
	}
	if o.transport == nil {
		return nil, errNoCredentials
	}
	if !cc.isSecure() {
		for _, one := range o.perCall {
			if one.RequireTransportSecurity() {
				return nil, errors.New("grpc: these credentials of calls require secure credentials of the transport")
			}
		}
	}
	cc.unary, cc.stream = chainUnaryClient(o.unary), chainStreamClient(o.stream)
	return cc, nil
}

// Dial is NewClient.
//
// Deprecated: use NewClient.
func Dial(target string, opts ...DialOption) (*ClientConn, error) {
	return DialContext(context.Background(), target, opts...)
}

// DialContext is NewClient, connected.
//
// Deprecated: use NewClient.
func DialContext(ctx context.Context, target string, opts ...DialOption) (conn *ClientConn, err error) {
	cc, err := NewClient(target, opts...)
	if err == nil {
		cc.Connect()
	}
	return cc, err
}

// isSecure tells what the program asked for.
func (cc *ClientConn) isSecure() bool {
	return cc.options.transport.Info().SecurityProtocol != "insecure"
}

// Target is what was given to NewClient.
func (cc *ClientConn) Target() string { return cc.target }

// CanonicalTarget has a scheme.
func (cc *ClientConn) CanonicalTarget() string {
	if strings.Contains(cc.target, "://") {
		return cc.target
	}
	return "dns:///" + cc.target
}

// endpoint is the target without its scheme.
func (cc *ClientConn) endpoint() string {
	if cc.options.authority != "" {
		return cc.options.authority
	}
	if _, path, ok := strings.Cut(cc.target, "://"); ok {
		return path[strings.IndexByte(path, '/')+1:]
	}
	return strings.TrimPrefix(cc.target, "dns:")
}

// GetState is Ready once it was told to connect, or was used.
func (cc *ClientConn) GetState() connectivity.State { return connectivity.State(cc.state.Load()) }

// WaitForStateChange waits until the state is another; false: the context ended before.
func (cc *ClientConn) WaitForStateChange(ctx context.Context, sourceState connectivity.State) bool {
	cc.mutex.Lock()
	state, changed := cc.GetState(), cc.changed
	cc.mutex.Unlock()
	if state != sourceState {
		return true
	}
	select {
	case <-changed:
		return true
	case <-ctx.Done():
		return false
	}
}

func (cc *ClientConn) become(state connectivity.State) (before connectivity.State) {
	cc.mutex.Lock()
	defer cc.mutex.Unlock()
	before = cc.GetState()
	if before != state && before != connectivity.Shutdown {
		cc.state.Store(int32(state))
		close(cc.changed)
		cc.changed = make(chan struct{})
	}
	return before
}

// Connect has nothing to do.
func (cc *ClientConn) Connect() { cc.become(connectivity.Ready) }

// ResetConnectBackoff has nothing to do.
func (cc *ClientConn) ResetConnectBackoff() {}

// Close lets later calls fail.
func (cc *ClientConn) Close() error {
	if cc.become(connectivity.Shutdown) == connectivity.Shutdown {
		return ErrClientConnClosing
	}
	return nil
}

// GetMethodConfig is a method's part of the default service configuration.
func (cc *ClientConn) GetMethodConfig(method string) MethodConfig {
	return findConfig(cc.options.methods, method)
}

// open says that it is used.
func (cc *ClientConn) open() error {
	switch cc.GetState() {
	case connectivity.Ready:
		return nil
	case connectivity.Shutdown:
		return ErrClientConnClosing
	}
	if cc.become(connectivity.Ready) == connectivity.Shutdown {
		return ErrClientConnClosing
	}
	return nil
}

// Invoke makes a unary call.
//
// Deprecated: use ClientConn.Invoke.
func Invoke(ctx context.Context, method string, args, reply any, cc *ClientConn, opts ...CallOption) error {
	return cc.Invoke(ctx, method, args, reply, opts...)
}

// NewClientStream begins a call of streams.
//
// Deprecated: use ClientConn.NewStream.
func NewClientStream(ctx context.Context, desc *StreamDesc, cc *ClientConn, method string, opts ...CallOption) (ClientStream, error) {
	return cc.NewStream(ctx, desc, method, opts...)
}

// ClientSupportedCompressors are the compressors that the caller understands; for handlers.
func ClientSupportedCompressors(ctx context.Context) ([]string, error) {
	call := callOf(ctx)
	if call == nil {
		return nil, errors.New("grpc: not the context of a handler")
	}
	return call.accepts(), nil
}
