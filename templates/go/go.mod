module {{name}}

go 1.24

require sledge v0.0.0

replace sledge => ./sdk
