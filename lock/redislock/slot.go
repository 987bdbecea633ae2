package redislock

// slot returns the hash slot of a key without braces: CRC-16/XMODEM modulo
// 16384, as the Redis Cluster specification has it.
func slot(key string) int {
	var crc uint16
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc % 16384)
}
