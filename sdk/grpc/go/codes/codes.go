// Package codes has the codes with which calls end.
package codes

import (
	"fmt"
	"strconv"
)

// Code is how a call ended. The numbers are those of the protocol.
type Code uint32

// All codes.
const (
	OK                 Code = 0  // The call succeeded.
	Canceled           Code = 1  // The caller gave up.
	Unknown            Code = 2  // An error that is no status.
	InvalidArgument    Code = 3  // The arguments are wrong in every state.
	DeadlineExceeded   Code = 4  // The time is over.
	NotFound           Code = 5  // There is no such thing.
	AlreadyExists      Code = 6  // There is such a thing already.
	PermissionDenied   Code = 7  // This caller may not.
	ResourceExhausted  Code = 8  // A limit is reached.
	FailedPrecondition Code = 9  // The state has to change first.
	Aborted            Code = 10 // Another operation came in between.
	OutOfRange         Code = 11 // Behind the end.
	Unimplemented      Code = 12 // There is no such method.
	Internal           Code = 13 // Something that always holds does not.
	Unavailable        Code = 14 // Not now; it may be tried again.
	DataLoss           Code = 15 // Data is lost for good.
	Unauthenticated    Code = 16 // The caller is not known.
)

const count = 17

var names = [count]string{
	"OK", "Canceled", "Unknown", "InvalidArgument", "DeadlineExceeded", "NotFound", "AlreadyExists", "PermissionDenied", "ResourceExhausted",
	"FailedPrecondition", "Aborted", "OutOfRange", "Unimplemented", "Internal", "Unavailable", "DataLoss", "Unauthenticated",
}

// protocolNames are the names in JSON, which are those of the protocol.
var protocolNames = map[string]Code{
	"OK": OK, "CANCELLED": Canceled, "UNKNOWN": Unknown, "INVALID_ARGUMENT": InvalidArgument, "DEADLINE_EXCEEDED": DeadlineExceeded,
	"NOT_FOUND": NotFound, "ALREADY_EXISTS": AlreadyExists, "PERMISSION_DENIED": PermissionDenied, "RESOURCE_EXHAUSTED": ResourceExhausted,
	"FAILED_PRECONDITION": FailedPrecondition, "ABORTED": Aborted, "OUT_OF_RANGE": OutOfRange, "UNIMPLEMENTED": Unimplemented,
	"INTERNAL": Internal, "UNAVAILABLE": Unavailable, "DATA_LOSS": DataLoss, "UNAUTHENTICATED": Unauthenticated,
}

// String is the name of the constant, or Code(n).
func (c Code) String() string {
	if c < count {
		return names[c]
	}
	return "Code(" + strconv.FormatUint(uint64(c), 10) + ")"
}

// UnmarshalJSON takes a number or a name of the protocol. null changes nothing.
func (c *Code) UnmarshalJSON(bytes []byte) error {
	if string(bytes) == "null" {
		return nil
	}
	if c == nil {
		return fmt.Errorf("codes: no Code to write %s to", bytes)
	}
	if number, err := strconv.ParseUint(string(bytes), 10, 32); err == nil {
		if number >= count {
			return fmt.Errorf("codes: %d is no code", number)
		}
		*c = Code(number)
		return nil
	}
	// Names have nothing that JSON escapes.
	if name, err := strconv.Unquote(string(bytes)); err == nil {
		if code, known := protocolNames[name]; known {
			*c = code
			return nil
		}
	}
	return fmt.Errorf("codes: %s is no code", bytes)
}
