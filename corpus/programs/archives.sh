# ways: more
# needs: p7zip-full flac zip unzip
mkdir d && for i in $(seq 30); do seq $((i * 50)) >d/f$i; done
$CHECK zip -q -r a.zip d && $CHECK unzip -q -t a.zip && $CHECK 7z a -bd -mmt=4 a.7z d | grep -c Everything; $CHECK 7z t -bd a.7z | grep -c Everything
head -c 400000 /dev/zero | tr '\0' 'a' >raw && $CHECK flac --silent --force-raw-format --endian=little --sign=signed --channels=2 --bps=16 --sample-rate=44100 -8 raw -o a.flac && $CHECK flac --silent -d a.flac -o b.wav && cksum <b.wav
