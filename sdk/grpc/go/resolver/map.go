package resolver

import (
	"slices"
	"strings"
)

type addressEntry[T any] struct {
	address Address
	value   T
}

// AddressMapV2 has values by addresses.
type AddressMapV2[T any] struct{ entries []addressEntry[T] }

// AddressMap is the old kind.
//
// Deprecated: use AddressMapV2.
type AddressMap = AddressMapV2[any]

// NewAddressMap is empty.
//
// Deprecated: use NewAddressMapV2.
func NewAddressMap() *AddressMap { return NewAddressMapV2[any]() }

// NewAddressMapV2 is empty.
func NewAddressMapV2[T any]() *AddressMapV2[T] { return &AddressMapV2[T]{} }

func (a *AddressMapV2[T]) index(addr Address) int {
	return slices.IndexFunc(a.entries, func(e addressEntry[T]) bool {
		return e.address.Addr == addr.Addr && e.address.ServerName == addr.ServerName && e.address.Attributes.Equal(addr.Attributes)
	})
}

// Get has the value of an address.
func (a *AddressMapV2[T]) Get(addr Address) (value T, ok bool) {
	if at := a.index(addr); at >= 0 {
		return a.entries[at].value, true
	}
	return value, false
}

// Set replaces it.
func (a *AddressMapV2[T]) Set(addr Address, value T) {
	if at := a.index(addr); at >= 0 {
		a.entries[at].value = value
		return
	}
	a.entries = append(a.entries, addressEntry[T]{addr, value})
}

// Delete removes it.
func (a *AddressMapV2[T]) Delete(addr Address) {
	if at := a.index(addr); at >= 0 {
		a.entries = slices.Delete(a.entries, at, at+1)
	}
}

// Len is how many there are.
func (a *AddressMapV2[T]) Len() int { return len(a.entries) }

// Keys are the addresses.
func (a *AddressMapV2[T]) Keys() []Address {
	var all []Address
	for _, entry := range a.entries {
		all = append(all, entry.address)
	}
	return all
}

// Values are the values.
func (a *AddressMapV2[T]) Values() []T {
	var all []T
	for _, entry := range a.entries {
		all = append(all, entry.value)
	}
	return all
}

// All are both.
func (a *AddressMapV2[T]) All() func(yield func(Address, T) bool) {
	return func(yield func(Address, T) bool) {
		for _, entry := range a.entries {
			if !yield(entry.address, entry.value) {
				return
			}
		}
	}
}

type endpointEntry[T any] struct {
	endpoint Endpoint
	value    T
}

// EndpointMap has values by endpoints: by the set of their addresses.
type EndpointMap[T any] struct{ entries map[string]endpointEntry[T] }

// NewEndpointMap is empty.
func NewEndpointMap[T any]() *EndpointMap[T] { return &EndpointMap[T]{map[string]endpointEntry[T]{}} }

func endpointKey(e Endpoint) string {
	var all []string
	for _, address := range e.Addresses {
		all = append(all, address.Addr)
	}
	slices.Sort(all)
	return strings.Join(all, "\x00")
}

// Get has the value of an endpoint.
func (em *EndpointMap[T]) Get(e Endpoint) (value T, ok bool) {
	entry, ok := em.entries[endpointKey(e)]
	return entry.value, ok
}

// Set replaces it.
func (em *EndpointMap[T]) Set(e Endpoint, value T) {
	em.entries[endpointKey(e)] = endpointEntry[T]{e, value}
}

// Delete removes it.
func (em *EndpointMap[T]) Delete(e Endpoint) { delete(em.entries, endpointKey(e)) }

// Len is how many there are.
func (em *EndpointMap[T]) Len() int { return len(em.entries) }

// Keys are the endpoints.
func (em *EndpointMap[T]) Keys() []Endpoint {
	var all []Endpoint
	for _, entry := range em.entries {
		all = append(all, entry.endpoint)
	}
	return all
}

// Values are the values.
func (em *EndpointMap[T]) Values() []T {
	var all []T
	for _, entry := range em.entries {
		all = append(all, entry.value)
	}
	return all
}

// All are both.
func (em *EndpointMap[T]) All() func(yield func(Endpoint, T) bool) {
	return func(yield func(Endpoint, T) bool) {
		for _, entry := range em.entries {
			if !yield(entry.endpoint, entry.value) {
				return
			}
		}
	}
}
