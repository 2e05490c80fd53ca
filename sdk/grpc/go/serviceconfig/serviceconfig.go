// Package serviceconfig has the types of service configurations.
package serviceconfig

// Config is a parsed one.
type Config interface{ isServiceConfig() }

// LoadBalancingConfig is a balancer's part of one.
type LoadBalancingConfig interface{ isLoadBalancingConfig() }

// ParseResult is one, or why it is wrong.
type ParseResult struct {
	Config Config
	Err    error
}
