"""The matching experiments of P-ToPSS, and its patterns on real logins and trades."""
