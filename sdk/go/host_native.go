//go:build !wasip1

package sledge

// There is no host outside of WebAssembly.
const noHost = -int32(ErrNotSupported)

func httpMethod(at pointer, room uint32) int32               { return noHost }
func httpTarget(at pointer, room uint32) int32               { return noHost }
func httpHeaders(at pointer, room uint32) int32              { return noHost }
func httpTrailer(name string, at pointer, room uint32) int32 { return noHost }
func httpStatus(code int32) int32                            { return noHost }
func httpSetHeader(name, value string) int32                 { return noHost }
func httpAddHeader(name, value string) int32                 { return noHost }
func httpSetTrailer(name, value string) int32                { return noHost }
func httpStream(length int64) int32                          { return noHost }

func kvOpen(name string) int32 { return noHost }
func kvGet(bucket int32, key string, value pointer, room uint32, version *uint64) int32 {
	return noHost
}
func kvGetMany(bucket int32, keys pointer, count uint32, found, values pointer, room uint32) int32 {
	return noHost
}
func kvExists(bucket int32, key string) int32                                        { return noHost }
func kvListKeys(bucket int32, prefix, after string, keys pointer, room uint32) int32 { return noHost }
func kvSet(bucket int32, key string, value pointer, length uint32, version *uint64) int32 {
	return noHost
}
func kvDelete(bucket int32, key string) int32                             { return noHost }
func kvIncrement(bucket int32, key string, delta int64, sum *int64) int32 { return noHost }
func kvCompareAndSwap(bucket int32, key string, expected int64, value pointer, length uint32, version *uint64) int32 {
	return noHost
}
func kvCommit(bucket int32, expected pointer, expectedCount uint32, changes pointer, changeCount uint32, version *uint64) int32 {
	return noHost
}

func callInvoke(name string, input pointer, length uint32, reply pointer, room uint32) int32 {
	return noHost
}
func callStart(name string, input pointer, length uint32) int32 { return noHost }
func callWait(call int32, reply pointer, room uint32) int32     { return noHost }
func callRest(reply pointer, room uint32) int32                 { return noHost }
func callSend(name string, input pointer, length uint32) int32  { return noHost }

func fetchSend(method, url string, headers pointer, headersLength uint32, body pointer, bodyLength uint32, times pointer) int32 {
	return noHost
}
func fetchStatus(request int32) int32                             { return noHost }
func fetchHeaders(request int32, rows pointer, room uint32) int32 { return noHost }
func fetchRead(request int32, buffer pointer, room uint32) int32  { return noHost }
func fetchClose(request int32) int32                              { return noHost }

func noteLog(level int32, message string) int32 { return noHost }
func notePhase(id uint32) int32                 { return noHost }
