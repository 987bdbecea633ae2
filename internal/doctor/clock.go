package doctor

import "time"

// maxSkew is by how much a clock may be off: the times in events and evidence are told in
// seconds.
const maxSkew = time.Second

// CheckClock compares a server's time, which was asked for from began until now, with this
// host's.
func CheckClock(c Check, subject string, server, began time.Time) []Finding {
	now := time.Now()
	switch {
	case server.Before(began.Add(-maxSkew)):
		return []Finding{c.Found(subject, "its clock is %v behind this host's", began.Sub(server).Round(time.Second))}
	case server.After(now.Add(maxSkew)):
		return []Finding{c.Found(subject, "its clock is %v ahead of this host's", server.Sub(now).Round(time.Second))}
	}
	return nil
}
