// Package status makes errors that say with which code a call ends, and tells the code of errors.
package status

import (
	"context"
	"errors"
	"fmt"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/runtime/protoiface"
	"google.golang.org/protobuf/runtime/protoimpl"
	"google.golang.org/protobuf/types/known/anypb"
)

// Status is how a call ended: code, message and details. It does not change.
type Status struct{ proto *spb.Status }

// New makes one.
func New(c codes.Code, msg string) *Status {
	return &Status{&spb.Status{Code: int32(c), Message: msg}}
}

// Newf makes one whose message is formatted.
func Newf(c codes.Code, format string, a ...any) *Status { return New(c, fmt.Sprintf(format, a...)) }

// Error is New(c, msg).Err().
func Error(c codes.Code, msg string) error { return New(c, msg).Err() }

// Errorf is Newf(c, format, a...).Err().
func Errorf(c codes.Code, format string, a ...any) error { return Newf(c, format, a...).Err() }

// FromProto copies s.
func FromProto(s *spb.Status) *Status { return &Status{proto.Clone(s).(*spb.Status)} }

// ErrorProto is FromProto(s).Err().
func ErrorProto(s *spb.Status) error { return FromProto(s).Err() }

// Code is OK for nil.
func (s *Status) Code() codes.Code {
	if s == nil {
		return codes.OK
	}
	return codes.Code(s.proto.GetCode())
}

// Message is empty for nil.
func (s *Status) Message() string {
	if s == nil {
		return ""
	}
	return s.proto.GetMessage()
}

// Proto is a copy.
func (s *Status) Proto() *spb.Status {
	if s == nil {
		return nil
	}
	return proto.Clone(s.proto).(*spb.Status)
}

// Err is nil when the code is OK.
func (s *Status) Err() error {
	if s.Code() == codes.OK {
		return nil
	}
	return &statusError{s}
}

// String is what the error says.
func (s *Status) String() string {
	return fmt.Sprintf("rpc error: code = %s desc = %s", s.Code(), s.Message())
}

// WithDetails is a copy that has these messages besides. A status that is OK has none.
func (s *Status) WithDetails(details ...protoiface.MessageV1) (*Status, error) {
	if s.Code() == codes.OK {
		return nil, errors.New("status: OK has no details")
	}
	p := s.Proto()
	for _, detail := range details {
		wrapped, err := anypb.New(protoimpl.X.ProtoMessageV2Of(detail))
		if err != nil {
			return nil, err
		}
		p.Details = append(p.Details, wrapped)
	}
	return &Status{p}, nil
}

// Details are the messages, or an error in place of each that cannot be read.
func (s *Status) Details() []any {
	if s == nil {
		return nil
	}
	details := make([]any, 0, len(s.proto.GetDetails()))
	for _, wrapped := range s.proto.GetDetails() {
		detail, err := wrapped.UnmarshalNew()
		if err != nil {
			details = append(details, err)
		} else {
			details = append(details, protoimpl.X.ProtoMessageV1Of(detail))
		}
	}
	return details
}

// statusError is a status that is not OK.
type statusError struct{ status *Status }

func (e *statusError) Error() string { return e.status.String() }

// GRPCStatus is how this package, and others, know a status in an error.
func (e *statusError) GRPCStatus() *Status { return e.status }

// Is compares what both say.
func (e *statusError) Is(target error) bool {
	other, ok := target.(*statusError)
	return ok && proto.Equal(e.status.proto, other.status.proto)
}

type statuser interface{ GRPCStatus() *Status }

// FromError finds the status in an error, also in one that wraps it; then the message is all of the error's text. false: there is none, and
// the answer is Unknown.
func FromError(err error) (s *Status, ok bool) {
	if err == nil {
		return nil, true
	}
	if direct, ok := err.(statuser); ok {
		if status := direct.GRPCStatus(); status != nil {
			return status, true
		}
		// An error that says it is OK is none that it could be known by.
		return New(codes.Unknown, err.Error()), false
	}
	var within statuser
	if !errors.As(err, &within) {
		return New(codes.Unknown, err.Error()), false
	}
	status := within.GRPCStatus()
	if status == nil {
		return New(codes.Unknown, err.Error()), false
	}
	p := status.Proto()
	p.Message = err.Error()
	return &Status{p}, true
}

// Convert is FromError without the second answer.
func Convert(err error) *Status {
	s, _ := FromError(err)
	return s
}

// Code is OK for nil, and Unknown where there is no status.
func Code(err error) codes.Code {
	if err == nil {
		return codes.OK
	}
	return Convert(err).Code()
}

// FromContextError makes a status of an error of a context; Unknown of others.
func FromContextError(err error) *Status {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return New(codes.DeadlineExceeded, err.Error())
	case errors.Is(err, context.Canceled):
		return New(codes.Canceled, err.Error())
	}
	return New(codes.Unknown, err.Error())
}
