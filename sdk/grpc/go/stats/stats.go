// Package stats has what handlers of statistics are told of calls. There is no connection: each call begins and ends one.
package stats

import (
	"context"
	"net"
	"time"

	"google.golang.org/grpc/metadata"
)

// Handler is told.
type Handler interface {
	TagRPC(context.Context, *RPCTagInfo) context.Context
	HandleRPC(context.Context, RPCStats)
	TagConn(context.Context, *ConnTagInfo) context.Context
	HandleConn(context.Context, ConnStats)
}

// RPCTagInfo is what is known when a call begins.
type RPCTagInfo struct {
	FullMethodName      string
	FailFast            bool
	NameResolutionDelay bool
}

// ConnTagInfo is what is known when a connection begins.
type ConnTagInfo struct {
	RemoteAddr net.Addr
	LocalAddr  net.Addr
}

// RPCStats is one of the types that follow.
type RPCStats interface {
	isRPCStats()
	IsClient() bool
}

// ConnStats is ConnBegin or ConnEnd.
type ConnStats interface {
	isConnStats()
	IsClient() bool
}

// Begin is where a call begins.
type Begin struct {
	Client                    bool
	BeginTime                 time.Time
	FailFast                  bool
	IsClientStream            bool
	IsServerStream            bool
	IsTransparentRetryAttempt bool
}

// InHeader is headers that came.
type InHeader struct {
	Client      bool
	WireLength  int
	Compression string
	Header      metadata.MD
	FullMethod  string
	RemoteAddr  net.Addr
	LocalAddr   net.Addr
}

// InPayload is a message that came.
type InPayload struct {
	Client  bool
	Payload any
	// Deprecated: it is empty.
	Data             []byte
	Length           int
	CompressedLength int
	WireLength       int
	RecvTime         time.Time
}

// InTrailer is trailers that came.
type InTrailer struct {
	Client     bool
	WireLength int
	Trailer    metadata.MD
}

// OutHeader is headers that went out.
type OutHeader struct {
	Client      bool
	Compression string
	Header      metadata.MD
	Authority   string
	FullMethod  string
	RemoteAddr  net.Addr
	LocalAddr   net.Addr
}

// OutPayload is a message that went out.
type OutPayload struct {
	Client  bool
	Payload any
	// Deprecated: it is empty.
	Data             []byte
	Length           int
	CompressedLength int
	WireLength       int
	SentTime         time.Time
}

// OutTrailer is trailers that went out.
type OutTrailer struct {
	Client     bool
	WireLength int
	Trailer    metadata.MD
}

// End is where a call ends.
type End struct {
	Client    bool
	BeginTime time.Time
	EndTime   time.Time
	Trailer   metadata.MD
	Error     error
}

// DelayedPickComplete does not come.
type DelayedPickComplete struct{}

// PickerUpdated is DelayedPickComplete.
//
// Deprecated: use that.
type PickerUpdated = DelayedPickComplete

// ConnBegin is where a connection begins.
type ConnBegin struct{ Client bool }

// ConnEnd is where it ends.
type ConnEnd struct{ Client bool }

func (s *Begin) isRPCStats()               {}
func (s *InHeader) isRPCStats()            {}
func (s *InPayload) isRPCStats()           {}
func (s *InTrailer) isRPCStats()           {}
func (s *OutHeader) isRPCStats()           {}
func (s *OutPayload) isRPCStats()          {}
func (s *OutTrailer) isRPCStats()          {}
func (s *End) isRPCStats()                 {}
func (s *DelayedPickComplete) isRPCStats() {}
func (s *ConnBegin) isConnStats()          {}
func (s *ConnEnd) isConnStats()            {}

// IsClient tells on which side it is.
func (s *Begin) IsClient() bool { return s.Client }

// IsClient tells on which side it is.
func (s *InHeader) IsClient() bool { return s.Client }

// IsClient tells on which side it is.
func (s *InPayload) IsClient() bool { return s.Client }

// IsClient tells on which side it is.
func (s *InTrailer) IsClient() bool { return s.Client }

// IsClient tells on which side it is.
func (s *OutHeader) IsClient() bool { return s.Client }

// IsClient tells on which side it is.
func (s *OutPayload) IsClient() bool { return s.Client }

// IsClient tells on which side it is.
func (s *OutTrailer) IsClient() bool { return s.Client }

// IsClient tells on which side it is.
func (s *End) IsClient() bool { return s.Client }

// IsClient tells on which side it is.
func (*DelayedPickComplete) IsClient() bool { return true }

// IsClient tells on which side it is.
func (s *ConnBegin) IsClient() bool { return s.Client }

// IsClient tells on which side it is.
func (s *ConnEnd) IsClient() bool { return s.Client }
