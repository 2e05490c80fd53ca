// Package money writes amounts for people.
package money

import (
	"fmt"
	"strings"

	"shop/pb"
)

// Format writes an amount with at least two digits behind the point, as in "12.50 EUR".
func Format(amount *pb.Money) string {
	units, nanos, sign := amount.GetUnits(), amount.GetNanos(), ""
	if units < 0 || nanos < 0 {
		sign = "-"
	}
	// The smallest number has no positive counterpart of its own type.
	whole := uint64(units)
	if units < 0 {
		whole = -whole
	}
	if nanos < 0 {
		nanos = -nanos
	}
	digits := fmt.Sprintf("%09d", nanos)
	digits = digits[:2] + strings.TrimRight(digits[2:], "0")
	return fmt.Sprintf("%s%d.%s %s", sign, whole, digits, amount.GetCurrency())
}
