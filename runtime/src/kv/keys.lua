-- Keys of a bucket, and the version of its set of keys. KEYS: order, buckets. ARGV: the bucket, the bounds of the keys, how many at most.
return { redis.call('HGET', KEYS[2], ARGV[1]) or redis.call('HGET', KEYS[2], '') or '0', redis.call('ZRANGEBYLEX', KEYS[1], ARGV[2], ARGV[3], 'LIMIT', 0, ARGV[4]) }
