// Package metadata has the metadata of calls, which goes through contexts.
package metadata

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"

	"google.golang.org/grpc/internal/carry"
)

// MD is metadata: names, in lower case, and of each its values. Values of names that end with -bin are any bytes.
type MD map[string][]string

// New makes one of one value each.
func New(m map[string]string) MD {
	md := make(MD, len(m))
	for name, value := range m {
		md.Append(name, value)
	}
	return md
}

// Pairs makes one of name, value, name, value. It panics if the last has no value.
func Pairs(kv ...string) MD {
	md := make(MD, len(kv)/2)
	md.add(check("Pairs", kv))
	return md
}

func check(function string, kv []string) []string {
	if len(kv)%2 != 0 {
		panic(fmt.Sprintf("metadata: %s has %d arguments: a name without a value", function, len(kv)))
	}
	return kv
}

func (md MD) add(kv []string) {
	for i := 0; i+1 < len(kv); i += 2 {
		md.Append(kv[i], kv[i+1])
	}
}

// Join makes one of all.
func Join(mds ...MD) MD {
	all := MD{}
	for _, md := range mds {
		for name, values := range md {
			all[name] = append(all[name], values...)
		}
	}
	return all
}

// Len is the number of names.
func (md MD) Len() int { return len(md) }

// Copy shares nothing with md.
func (md MD) Copy() MD {
	if md == nil {
		return MD{}
	}
	return copied(md)
}

func copied(md map[string][]string) MD {
	all := make(MD, len(md))
	for name, values := range md {
		all[name] = append([]string(nil), values...)
	}
	return all
}

// Get has the values of a name.
func (md MD) Get(k string) []string { return md[strings.ToLower(k)] }

// Set replaces the values of a name, if there are new ones.
func (md MD) Set(k string, vals ...string) {
	if len(vals) > 0 {
		md[strings.ToLower(k)] = vals
	}
}

// Append adds values to a name.
func (md MD) Append(k string, vals ...string) {
	if len(vals) > 0 {
		name := strings.ToLower(k)
		md[name] = append(md[name], vals...)
	}
}

// Delete removes a name.
func (md MD) Delete(k string) { delete(md, strings.ToLower(k)) }

// String is for people.
func (md MD) String() string { return fmt.Sprintf("MD%v", map[string][]string(md)) }

// DecodeKeyValue decodes the value of a name that ends with -bin.
//
// Deprecated: values come decoded.
func DecodeKeyValue(k, v string) (string, string, error) {
	if !strings.HasSuffix(strings.ToLower(k), "-bin") {
		return k, v, nil
	}
	bytes, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(v, "="))
	return k, string(bytes), err
}

// NewIncomingContext is for tests and for what stands in front of handlers.
func NewIncomingContext(ctx context.Context, md MD) context.Context {
	return context.WithValue(ctx, carry.IncomingKey{}, map[string][]string(md))
}

// NewOutgoingContext has this metadata for the calls that are made with it, in place of what ctx has.
func NewOutgoingContext(ctx context.Context, md MD) context.Context {
	return carry.WithOutgoing(ctx, &carry.Outgoing{Map: md})
}

// AppendToOutgoingContext has this metadata besides what ctx has.
func AppendToOutgoingContext(ctx context.Context, kv ...string) context.Context {
	kv = append([]string(nil), check("AppendToOutgoingContext", kv)...)
	outgoing := &carry.Outgoing{}
	if before := carry.OutgoingOf(ctx); before != nil {
		outgoing.Map = before.Map
		outgoing.Added = append(outgoing.Added, before.Added...)
	}
	outgoing.Added = append(outgoing.Added, kv)
	return carry.WithOutgoing(ctx, outgoing)
}

// FromIncomingContext is a copy of the metadata that came.
func FromIncomingContext(ctx context.Context) (MD, bool) {
	incoming, ok := carry.IncomingOf(ctx)
	if !ok {
		return nil, false
	}
	return lower(incoming), true
}

// ValueFromIncomingContext is a copy of one name's values.
func ValueFromIncomingContext(ctx context.Context, key string) []string {
	incoming, _ := carry.IncomingOf(ctx)
	return find(incoming, key)
}

// FromOutgoingContext is a copy of the metadata of calls that are made with ctx.
func FromOutgoingContext(ctx context.Context) (MD, bool) {
	outgoing := carry.OutgoingOf(ctx)
	if outgoing == nil {
		return nil, false
	}
	md := lower(outgoing.Map)
	for _, kv := range outgoing.Added {
		md.add(kv)
	}
	return md, true
}

// FromOutgoingContextRaw is the metadata itself: a map, and what was added to it.
//
// Deprecated: use FromOutgoingContext.
func FromOutgoingContextRaw(ctx context.Context) (MD, [][]string, bool) {
	outgoing := carry.OutgoingOf(ctx)
	if outgoing == nil {
		return nil, nil, false
	}
	return outgoing.Map, outgoing.Added, true
}

// ValueFromOutgoingContext is a copy of one name's values.
func ValueFromOutgoingContext(ctx context.Context, key string) []string {
	outgoing := carry.OutgoingOf(ctx)
	if outgoing == nil {
		return nil
	}
	values := find(outgoing.Map, key)
	for _, kv := range outgoing.Added {
		for i := 0; i+1 < len(kv); i += 2 {
			if strings.EqualFold(kv[i], key) {
				values = append(values, kv[i+1])
			}
		}
	}
	return values
}

func lower(md map[string][]string) MD {
	all := make(MD, len(md))
	for name, values := range md {
		all.Append(name, values...)
	}
	return all
}

func find(md map[string][]string, key string) []string {
	if values, ok := md[key]; ok {
		return append([]string(nil), values...)
	}
	for name, values := range md {
		if strings.EqualFold(name, key) {
			return append([]string(nil), values...)
		}
	}
	return nil
}
