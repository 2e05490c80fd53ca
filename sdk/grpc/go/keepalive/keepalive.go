// Package keepalive has settings of connections. There is no connection, so they do nothing.
package keepalive

import "time"

// ClientParameters are those of a client.
type ClientParameters struct {
	Time                time.Duration
	Timeout             time.Duration
	PermitWithoutStream bool
}

// ServerParameters are those of a server.
type ServerParameters struct {
	MaxConnectionIdle     time.Duration
	MaxConnectionAge      time.Duration
	MaxConnectionAgeGrace time.Duration
	Time                  time.Duration
	Timeout               time.Duration
}

// EnforcementPolicy is what a server demands of clients.
type EnforcementPolicy struct {
	MinTime             time.Duration
	PermitWithoutStream bool
}
