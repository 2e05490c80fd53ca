// Package connectivity has the states of connections.
package connectivity

// State is the state of a ClientConn.
type State int

// States.
const (
	Idle State = iota
	Connecting
	Ready
	TransientFailure
	Shutdown
)

func (s State) String() string {
	switch s {
	case Idle:
		return "IDLE"
	case Connecting:
		return "CONNECTING"
	case Ready:
		return "READY"
	case TransientFailure:
		return "TRANSIENT_FAILURE"
	case Shutdown:
		return "SHUTDOWN"
	}
	return "INVALID_STATE"
}

// ServingMode is the state of a server that is configured from outside.
type ServingMode int

// Modes.
const (
	ServingModeStarting ServingMode = iota
	ServingModeServing
	ServingModeNotServing
)

func (s ServingMode) String() string {
	switch s {
	case ServingModeStarting:
		return "STARTING"
	case ServingModeServing:
		return "SERVING"
	}
	return "NOT_SERVING"
}
