package receiver

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"strconv"
)

// address is where to send to. DingTalk has the signature there: the key is the
// secret, the text is the time in milliseconds with the secret.
func (r *Receiver) address() (string, error) {
	if r.cfg.Kind != DingTalk || r.cfg.Secret == "" {
		return r.cfg.URL, nil
	}
	address, err := url.Parse(r.cfg.URL)
	if err != nil {
		return "", err
	}
	stamp := strconv.FormatInt(r.cfg.Now().UnixMilli(), 10)
	query := address.Query()
	query.Set("timestamp", stamp)
	query.Set("sign", sign(r.cfg.Secret, stamp+"\n"+r.cfg.Secret))
	address.RawQuery = query.Encode()
	return address.String(), nil
}

func sign(key, message string) string {
	mac := hmac.New(sha256.New, []byte(key))
	_, _ = mac.Write([]byte(message)) // never fails
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
