package status

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func TestStatuses(t *testing.T) {
	err := Errorf(codes.NotFound, "no %d", 7)
	if err.Error() != "rpc error: code = NotFound desc = no 7" || Code(err) != codes.NotFound {
		t.Error(err)
	}
	wrapped := fmt.Errorf("reading: %w", err)
	s, ok := FromError(wrapped)
	if !ok || s.Code() != codes.NotFound || s.Message() != "reading: rpc error: code = NotFound desc = no 7" {
		t.Error(s, ok)
	}
	if !errors.Is(wrapped, Error(codes.NotFound, "no 7")) || errors.Is(wrapped, Error(codes.NotFound, "other")) {
		t.Error("errors.Is")
	}
	if s, ok := FromError(errors.New("x")); ok || s.Code() != codes.Unknown || s.Message() != "x" {
		t.Error(s, ok)
	}
	if s, ok := FromError(nil); !ok || s.Code() != codes.OK || s.Err() != nil || s.Details() != nil || s.Proto() != nil {
		t.Error(s, ok)
	}
	if Error(codes.OK, "x") != nil || Code(nil) != codes.OK {
		t.Error("OK is no error")
	}
	if FromContextError(context.DeadlineExceeded).Code() != codes.DeadlineExceeded || FromContextError(context.Canceled).Code() != codes.Canceled {
		t.Error("contexts")
	}
	if _, err := New(codes.OK, "").WithDetails(wrapperspb.Bool(true)); err == nil {
		t.Error("OK with details")
	}
}
