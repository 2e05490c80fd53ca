// Package attributes has values by keys, which do not change.
package attributes

import "fmt"

// Attributes are values by keys.
type Attributes struct{ values map[any]any }

// New has one.
func New(key, value any) *Attributes { return &Attributes{map[any]any{key: value}} }

// WithValue is a copy that has one more.
func (a *Attributes) WithValue(key, value any) *Attributes {
	all := New(key, value)
	if a != nil {
		for other, value := range a.values {
			if other != key {
				all.values[other] = value
			}
		}
	}
	return all
}

// Value is nil when there is none.
func (a *Attributes) Value(key any) any {
	if a == nil {
		return nil
	}
	return a.values[key]
}

// Equal compares values by their method Equal, if they have one.
func (a *Attributes) Equal(o *Attributes) bool {
	if a == nil || o == nil {
		return a == o || (a == nil && len(o.values) == 0) || (o == nil && len(a.values) == 0)
	}
	if len(a.values) != len(o.values) {
		return false
	}
	for key, value := range a.values {
		other, ok := o.values[key]
		if !ok {
			return false
		}
		if equal, ok := value.(interface{ Equal(any) bool }); ok {
			if !equal.Equal(other) {
				return false
			}
		} else if value != other {
			return false
		}
	}
	return true
}

func (a *Attributes) String() string {
	if a == nil {
		return "<nil>"
	}
	return fmt.Sprint(a.values)
}

// MarshalJSON is the text.
func (a *Attributes) MarshalJSON() ([]byte, error) { return []byte(fmt.Sprintf("%q", a.String())), nil }
