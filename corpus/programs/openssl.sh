# ways: check
# needs: openssl
seq 1000 >f
$CHECK openssl req -x509 -newkey rsa:1024 -nodes -keyout k -out c -days 2 -subj /CN=x 2>keys.log
$CHECK openssl x509 -in c -noout -subject && $CHECK openssl enc -aes-256-cbc -pbkdf2 -k p -in f -out e &&
    $CHECK openssl enc -d -aes-256-cbc -pbkdf2 -k p -in e | cmp - f
