package sledge

// Level is how important a message is.
type Level int32

// Levels of messages.
const (
	Trace Level = iota
	Debug
	Info
	Warn
	Error
)

// Log writes a message to the function's log. Lines that the function writes to standard error have the level Info.
func Log(level Level, message string) { noteLog(int32(level), message) }

// Phase starts a phase of the function's work, which its configuration declares.
func Phase(id uint32) { notePhase(id) }
