package sledge

// Invoke calls another function of the same tenant and returns its reply.
func Invoke(name string, input []byte) ([]byte, error) {
	return reply(func(buffer pointer, room uint32) int32 {
		return callInvoke(name, at(input), uint32(len(input)), buffer, room)
	})
}

// Call is a call that was started. It ends with the caller if the caller does not wait for it.
type Call struct{ handle int32 }

// Start calls another function and does not wait. The function runs when the caller waits or is preempted.
func Start(name string, input []byte) (Call, error) {
	handle, err := checked(callStart(name, at(input), uint32(len(input))))
	return Call{int32(handle)}, err
}

// Wait returns the reply.
func (c Call) Wait() ([]byte, error) {
	return reply(func(buffer pointer, room uint32) int32 { return callWait(c.handle, buffer, room) })
}

// Send calls another function whose reply is not needed. It may outlive the caller, which does not learn whether it started.
func Send(name string, input []byte) error {
	_, err := checked(callSend(name, at(input), uint32(len(input))))
	return err
}

// reply calls write, which writes the part of a reply that fits, and fetches the rest.
func reply(write func(at pointer, room uint32) int32) ([]byte, error) {
	first := make([]byte, firstRoom)
	length, err := checked(write(at(first), uint32(len(first))))
	if err != nil || length <= len(first) {
		return first[:length], err
	}
	all := make([]byte, length)
	rest := all[copy(all, first):]
	_, err = checked(callRest(at(rest), uint32(len(rest))))
	return all, err
}
