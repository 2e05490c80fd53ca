package grpc

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Code is status.Code.
//
// Deprecated: use that.
func Code(err error) codes.Code { return status.Code(err) }

// ErrorDesc is the message of an error's status.
//
// Deprecated: use status.Convert.
func ErrorDesc(err error) string { return status.Convert(err).Message() }

// Errorf is status.Errorf.
//
// Deprecated: use that.
func Errorf(c codes.Code, format string, a ...any) error { return status.Errorf(c, format, a...) }
