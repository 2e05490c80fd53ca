package money

import (
	"math"
	"testing"

	"shop/pb"
)

func TestFormat(t *testing.T) {
	for _, one := range []struct {
		units    int64
		nanos    int32
		expected string
	}{
		{12, 500_000_000, "12.50 EUR"},
		{0, 0, "0.00 EUR"},
		{0, -10_000_000, "-0.01 EUR"},
		{-3, -1, "-3.000000001 EUR"},
		{1, 123_400_000, "1.1234 EUR"},
		{math.MinInt64, 0, "-9223372036854775808.00 EUR"},
	} {
		amount := &pb.Money{Currency: "EUR", Units: one.units, Nanos: one.nanos}
		if found := Format(amount); found != one.expected {
			t.Errorf("%d, %d: %s, not %s", one.units, one.nanos, found, one.expected)
		}
	}
}
