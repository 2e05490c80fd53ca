module google.golang.org/grpc

go 1.21

require (
	google.golang.org/genproto/googleapis/rpc v0.0.0-20240318140521-94a12d6c2237
	google.golang.org/protobuf v1.33.0
)
