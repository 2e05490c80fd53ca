//! What server and channel share. It is the original's.

pub(crate) mod grpc_timeout;
pub(crate) mod rows;

pub(crate) use self::grpc_timeout::GrpcTimeout;
