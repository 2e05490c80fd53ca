package grpc

// What released versions had, and the present one has no more.

// SharedBufferPool has byte slices to use again.
//
// Deprecated: package mem has others.
type SharedBufferPool interface {
	Get(length int) []byte
	Put(*[]byte)
}

type noBufferPool struct{}

func (noBufferPool) Get(length int) []byte { return make([]byte, length) }
func (noBufferPool) Put(*[]byte)           {}

// NewSharedBufferPool keeps nothing.
//
// Deprecated: package mem has others.
func NewSharedBufferPool() SharedBufferPool { return noBufferPool{} }

// RecvBufferPool does nothing.
//
// Deprecated: it was an experiment.
func RecvBufferPool(bufferPool SharedBufferPool) ServerOption { return EmptyServerOption{} }

// WithRecvBufferPool does nothing.
//
// Deprecated: it was an experiment.
func WithRecvBufferPool(bufferPool SharedBufferPool) DialOption { return EmptyDialOption{} }

// WithServiceConfig does nothing: only the program sends to the channel.
//
// Deprecated: use WithDefaultServiceConfig.
func WithServiceConfig(c <-chan ServiceConfig) DialOption { return EmptyDialOption{} }

// WithBalancerName does nothing.
//
// Deprecated: use WithDefaultServiceConfig.
func WithBalancerName(balancerName string) DialOption { return EmptyDialOption{} }
