package sledge

import "fmt"

// Errno is why the server did not do something: an error number of WASI.
type Errno int32

// What the server answers.
const (
	ErrTooLarge     Errno = 1
	ErrNotAllowed   Errno = 2  // the host is not in the function's http_hosts
	ErrBusy         Errno = 6  // also: not known yet
	ErrAlready      Errno = 7  // the head of the reply is sent
	ErrFailed       Errno = 12 // the called function failed
	ErrNoRoom       Errno = 19
	ErrInvalid      Errno = 28
	ErrIO           Errno = 29 // the server's log says more
	ErrTooDeep      Errno = 32 // too many functions wait for each other
	ErrTooMany      Errno = 33
	ErrNotFound     Errno = 44
	ErrQuarantined  Errno = 56
	ErrNotSupported Errno = 58 // the server offers none
	ErrOverflow     Errno = 61
	ErrTimeout      Errno = 73
)

var messages = map[Errno]string{
	ErrTooLarge:     "larger than allowed",
	ErrNotAllowed:   "not allowed",
	ErrBusy:         "busy",
	ErrAlready:      "the head of the reply is sent already",
	ErrFailed:       "the function failed",
	ErrNoRoom:       "no room",
	ErrInvalid:      "invalid",
	ErrIO:           "input or output failed",
	ErrTooDeep:      "too many functions wait for each other",
	ErrTooMany:      "too many at once",
	ErrNotFound:     "not found",
	ErrQuarantined:  "the function is quarantined",
	ErrNotSupported: "the server does not offer this",
	ErrOverflow:     "more than 64 bits",
	ErrTimeout:      "timed out",
}

func (e Errno) Error() string {
	if message, known := messages[e]; known {
		return message
	}
	return fmt.Sprintf("error %d of WASI", int32(e))
}

// checked turns a result of the host into a number or an error.
func checked(result int32) (int, error) {
	if result < 0 {
		return 0, Errno(-result)
	}
	return int(result), nil
}
