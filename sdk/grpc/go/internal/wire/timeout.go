package wire

import (
	"math"
	"strconv"
	"time"
)

// ParseTimeout reads grpc-timeout: at most 8 digits and a unit.
func ParseTimeout(text []byte) (time.Duration, bool) {
	if len(text) < 2 || len(text) > 9 {
		return 0, false
	}
	var unit time.Duration
	switch text[len(text)-1] {
	case 'H':
		unit = time.Hour
	case 'M':
		unit = time.Minute
	case 'S':
		unit = time.Second
	case 'm':
		unit = time.Millisecond
	case 'u':
		unit = time.Microsecond
	case 'n':
		unit = time.Nanosecond
	default:
		return 0, false
	}
	count, err := strconv.ParseUint(string(text[:len(text)-1]), 10, 63)
	if err != nil {
		return 0, false
	}
	if count > uint64(math.MaxInt64/unit) {
		return math.MaxInt64, true
	}
	return time.Duration(count) * unit, true
}

// FormatTimeout writes grpc-timeout, rounded up to what 8 digits can say.
func FormatTimeout(timeout time.Duration) string {
	const most = 99_999_999
	for _, unit := range [...]struct {
		length time.Duration
		letter string
	}{{time.Nanosecond, "n"}, {time.Microsecond, "u"}, {time.Millisecond, "m"}, {time.Second, "S"}, {time.Minute, "M"}} {
		count := timeout / unit.length
		if timeout%unit.length > 0 {
			count++
		}
		if count <= most {
			return strconv.FormatInt(int64(count), 10) + unit.letter
		}
	}
	return strconv.FormatInt(int64(timeout/time.Hour), 10) + "H"
}
