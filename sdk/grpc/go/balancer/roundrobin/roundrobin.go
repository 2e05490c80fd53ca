// Package roundrobin has the name of a balancer. There is nothing to balance: the application's configuration says where calls go.
package roundrobin

// Name is for service configurations.
const Name = "round_robin"
