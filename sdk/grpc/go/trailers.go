package grpc

import (
	"encoding/base64"
	"strconv"
	"strings"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/internal/wire"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// statusOf reads a status from trailers; nil: the call succeeded.
func statusOf(rows []byte) error {
	var code, message, details []byte
	for {
		name, value, rest, ok := wire.NextField(rows)
		if !ok {
			break
		}
		rows = rest
		switch string(name) {
		case "grpc-status":
			code = value
		case "grpc-message":
			message = value
		case "grpc-status-details-bin":
			details = value
		}
	}
	if len(code) == 1 && code[0] == '0' {
		return nil
	}
	if code == nil {
		return status.Error(codes.Internal, "grpc: the reply has no grpc-status")
	}
	number, err := strconv.ParseUint(string(code), 10, 32)
	if err != nil {
		return status.Errorf(codes.Unknown, "grpc: the grpc-status %q is no number", code)
	}
	if len(details) > 0 {
		var full spb.Status
		if bytes, err := wire.DecodeBinary(details); err == nil && proto.Unmarshal(bytes, &full) == nil && uint64(full.GetCode()) == number {
			return status.ErrorProto(&full)
		}
	}
	return status.Error(codes.Code(number), wire.DecodeMessage(message))
}

// hasMore tells whether trailers have more than a status.
func hasMore(rows []byte) bool {
	for {
		name, _, rest, ok := wire.NextField(rows)
		if !ok {
			return false
		}
		if !strings.HasPrefix(string(name), "grpc-") {
			return true
		}
		rows = rest
	}
}

// setStatus writes how a call ended to the trailers.
func setStatus(x exchange, s *status.Status) {
	if s.Code() == codes.OK {
		x.setTrailer("grpc-status", "0")
		return
	}
	x.setTrailer("grpc-status", strconv.FormatUint(uint64(s.Code()), 10))
	if message := s.Message(); message != "" {
		x.setTrailer("grpc-message", wire.EncodeMessage(message))
	}
	full := s.Proto()
	if len(full.GetDetails()) == 0 {
		return
	}
	if bytes, err := proto.Marshal(full); err == nil {
		x.setTrailer("grpc-status-details-bin", base64.RawStdEncoding.EncodeToString(bytes))
	}
}
