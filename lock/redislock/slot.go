package redislock

import "strings"

// slots is how many a Redis Cluster has.
const slots = 16384

// slot returns the hash slot of a key by the Redis Cluster specification: CRC-16/XMODEM
// of its hash tag, or of the whole key, modulo 16384.
func slot(key string) int {
	if _, rest, found := strings.Cut(key, "{"); found {
		if tag, _, closed := strings.Cut(rest, "}"); closed && tag != "" {
			key = tag
		}
	}
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
	return int(crc % slots)
}
