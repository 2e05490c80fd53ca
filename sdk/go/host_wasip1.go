package sledge

// The host functions, in their flat form (sdk/wit/README.md). A string is an address and a length.

//go:wasmimport sledge:http method
func httpMethod(at pointer, room uint32) int32

//go:wasmimport sledge:http target
func httpTarget(at pointer, room uint32) int32

//go:wasmimport sledge:http headers
func httpHeaders(at pointer, room uint32) int32

//go:wasmimport sledge:http trailer
func httpTrailer(name string, at pointer, room uint32) int32

//go:wasmimport sledge:http status
func httpStatus(code int32) int32

//go:wasmimport sledge:http set-header
func httpSetHeader(name, value string) int32

//go:wasmimport sledge:http add-header
func httpAddHeader(name, value string) int32

//go:wasmimport sledge:http set-trailer
func httpSetTrailer(name, value string) int32

//go:wasmimport sledge:http stream
func httpStream(length int64) int32

//go:wasmimport sledge:kv open
func kvOpen(name string) int32

//go:wasmimport sledge:kv get
func kvGet(bucket int32, key string, value pointer, room uint32, version *uint64) int32

//go:wasmimport sledge:kv get-many
func kvGetMany(bucket int32, keys pointer, count uint32, found, values pointer, room uint32) int32

//go:wasmimport sledge:kv exists
func kvExists(bucket int32, key string) int32

//go:wasmimport sledge:kv list-keys
func kvListKeys(bucket int32, prefix, after string, keys pointer, room uint32) int32

//go:wasmimport sledge:kv set
func kvSet(bucket int32, key string, value pointer, length uint32, version *uint64) int32

//go:wasmimport sledge:kv delete
func kvDelete(bucket int32, key string) int32

//go:wasmimport sledge:kv increment
func kvIncrement(bucket int32, key string, delta int64, sum *int64) int32

//go:wasmimport sledge:kv compare-and-swap
func kvCompareAndSwap(bucket int32, key string, expected int64, value pointer, length uint32, version *uint64) int32

//go:wasmimport sledge:kv commit
func kvCommit(bucket int32, expected pointer, expectedCount uint32, changes pointer, changeCount uint32, version *uint64) int32

//go:wasmimport sledge:call invoke
func callInvoke(name string, input pointer, length uint32, reply pointer, room uint32) int32

//go:wasmimport sledge:call start
func callStart(name string, input pointer, length uint32) int32

//go:wasmimport sledge:call wait
func callWait(call int32, reply pointer, room uint32) int32

//go:wasmimport sledge:call rest
func callRest(reply pointer, room uint32) int32

//go:wasmimport sledge:call send
func callSend(name string, input pointer, length uint32) int32

//go:wasmimport sledge:fetch send
func fetchSend(method, url string, headers pointer, headersLength uint32, body pointer, bodyLength uint32, times pointer) int32

//go:wasmimport sledge:fetch status
func fetchStatus(request int32) int32

//go:wasmimport sledge:fetch headers
func fetchHeaders(request int32, rows pointer, room uint32) int32

//go:wasmimport sledge:fetch read
func fetchRead(request int32, buffer pointer, room uint32) int32

//go:wasmimport sledge:fetch close
func fetchClose(request int32) int32

//go:wasmimport sledge:note log
func noteLog(level int32, message string) int32

//go:wasmimport sledge:note phase
func notePhase(id uint32) int32
