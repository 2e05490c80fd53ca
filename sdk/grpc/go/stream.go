package grpc

import (
	"context"

	"google.golang.org/grpc/metadata"
)

// StreamHandler answers a call of streams.
type StreamHandler func(srv any, stream ServerStream) error

// StreamDesc describes a method of streams.
type StreamDesc struct {
	StreamName    string
	Handler       StreamHandler
	ServerStreams bool
	ClientStreams bool
}

// Stream is a call of streams.
//
// Deprecated: there is one for each side.
type Stream interface {
	Context() context.Context
	SendMsg(m any) error
	RecvMsg(m any) error
}

// ClientStream is a call of streams that is made. One goroutine may send while another receives.
type ClientStream interface {
	// Header waits for what came before the first message.
	Header() (metadata.MD, error)
	// Trailer is what came behind the last one, once receiving has failed.
	Trailer() metadata.MD
	// CloseSend says that nothing more is sent.
	CloseSend() error
	Context() context.Context
	// SendMsg fails with io.EOF when the call is over; receiving says how it ended.
	SendMsg(m any) error
	// RecvMsg fails with io.EOF when the call ended well, or with its status.
	RecvMsg(m any) error
}

// ServerStream is a call of streams that is answered. One goroutine may send while another receives.
type ServerStream interface {
	// SetHeader adds to what is sent before the first message.
	SetHeader(metadata.MD) error
	// SendHeader sends it.
	SendHeader(metadata.MD) error
	// SetTrailer adds to what is sent behind the last one.
	SetTrailer(metadata.MD)
	Context() context.Context
	SendMsg(m any) error
	// RecvMsg fails with io.EOF when the client sends nothing more.
	RecvMsg(m any) error
}

// ServerStreamingClient receives a stream.
type ServerStreamingClient[Res any] interface {
	Recv() (*Res, error)
	ClientStream
}

// ServerStreamingServer sends one.
type ServerStreamingServer[Res any] interface {
	Send(*Res) error
	ServerStream
}

// ClientStreamingClient sends a stream and receives one message.
type ClientStreamingClient[Req any, Res any] interface {
	Send(*Req) error
	CloseAndRecv() (*Res, error)
	ClientStream
}

// ClientStreamingServer is its other side.
type ClientStreamingServer[Req any, Res any] interface {
	Recv() (*Req, error)
	SendAndClose(*Res) error
	ServerStream
}

// BidiStreamingClient sends a stream and receives one.
type BidiStreamingClient[Req any, Res any] interface {
	Send(*Req) error
	Recv() (*Res, error)
	ClientStream
}

// BidiStreamingServer is its other side.
type BidiStreamingServer[Req any, Res any] interface {
	Recv() (*Req, error)
	Send(*Res) error
	ServerStream
}

// GenericClientStream is all of them for clients. Generated code has it.
type GenericClientStream[Req any, Res any] struct{ ClientStream }

var (
	_ ServerStreamingClient[string]      = (*GenericClientStream[int, string])(nil)
	_ ClientStreamingClient[int, string] = (*GenericClientStream[int, string])(nil)
	_ BidiStreamingClient[int, string]   = (*GenericClientStream[int, string])(nil)
	_ ServerStreamingServer[string]      = (*GenericServerStream[int, string])(nil)
	_ ClientStreamingServer[int, string] = (*GenericServerStream[int, string])(nil)
	_ BidiStreamingServer[int, string]   = (*GenericServerStream[int, string])(nil)
)

// Send sends a message.
func (x *GenericClientStream[Req, Res]) Send(m *Req) error { return x.SendMsg(m) }

// Recv receives one.
func (x *GenericClientStream[Req, Res]) Recv() (*Res, error) {
	m := new(Res)
	if err := x.RecvMsg(m); err != nil {
		return nil, err
	}
	return m, nil
}

// CloseAndRecv says that nothing more is sent, and receives the only message.
func (x *GenericClientStream[Req, Res]) CloseAndRecv() (*Res, error) {
	if err := x.CloseSend(); err != nil {
		return nil, err
	}
	return x.Recv()
}

// GenericServerStream is all of them for servers. Generated code has it.
type GenericServerStream[Req any, Res any] struct{ ServerStream }

// Send sends a message.
func (x *GenericServerStream[Req, Res]) Send(m *Res) error { return x.SendMsg(m) }

// SendAndClose sends the only one.
func (x *GenericServerStream[Req, Res]) SendAndClose(m *Res) error { return x.SendMsg(m) }

// Recv receives a message.
func (x *GenericServerStream[Req, Res]) Recv() (*Req, error) {
	m := new(Req)
	if err := x.RecvMsg(m); err != nil {
		return nil, err
	}
	return m, nil
}
