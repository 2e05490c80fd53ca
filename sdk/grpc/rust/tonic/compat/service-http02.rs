//! What server and channel share. It is the original's, but for `rows`.

pub(crate) mod grpc_timeout;
pub(crate) mod router;
pub(crate) mod rows;

pub(crate) use self::grpc_timeout::GrpcTimeout;
